// When buffers' lifetimes begin and end, told to listeners as execution comes by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/execution_events.h"
#include "engine/plan/program.h"

namespace trainscope {

// Persistent and external buffers are there before a step and after it: nothing is told of them.
class MemoryEvents {
 public:
  explicit MemoryEvents(const Program& program);

  // A part of the step begins at this time. What a micro-batch before it left for the update is
  // freed where another micro-batch comes first: it makes that anew.
  void begin_at(std::int64_t time, const ExecutionListeners& listeners);
  // A call at this time comes next. Later calls of the same time change nothing.
  void enter(std::int64_t time, const ExecutionListeners& listeners);
  // No call at a time before `time` is to come.
  void leave_until(std::int64_t time, const ExecutionListeners& listeners);

 private:
  // Buffers by time: those of time t are [first[t], first[t + 1]) of the list.
  struct ByTime {
    std::vector<std::int32_t> first;
    std::vector<BufferId> buffers;
    std::span<const BufferId> at(std::int64_t time) const;
  };
  static ByTime by_time(const Program& program, std::int64_t (*time_of)(const PlannedBuffer&));
  // Those of the buffers that are not what `alive` says, which they become.
  std::span<const BufferId> changed(std::span<const BufferId> buffers, bool alive);
  void tell_bound(std::int64_t time, const ExecutionListeners& listeners);

  ByTime bound_;
  ByTime freed_;
  // By BufferId.
  std::vector<bool> alive_;
  std::vector<BufferId> changed_;  // as large as any list can be
  std::int64_t entered_ = 0;       // times before it have been told as bound
  std::int64_t left_ = 0;          // ... as freed
};

}  // namespace trainscope
