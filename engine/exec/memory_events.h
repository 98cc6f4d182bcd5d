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

  // As if no time before `time` were still to come.
  void begin_at(std::int64_t time) { entered_ = left_ = time; }
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
  void tell_bound(std::int64_t time, const ExecutionListeners& listeners) const;

  ByTime bound_;
  ByTime freed_;
  std::int64_t entered_ = 0;  // times before it have been told as bound
  std::int64_t left_ = 0;     // ... as freed
};

}  // namespace trainscope
