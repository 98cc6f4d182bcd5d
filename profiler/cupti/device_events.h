// Work of a device as events of a profile.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiler/cupti/activity_join.h"
#include "profiler/record/event.h"

namespace trainscope::profiler {

// A run of a call is a span, kCall, from the begin of its first kernel, copy or set to the end of
// its last one; in it each of them is a span, kDeviceWork. Each stream of each device is a thread,
// from `first_thread` on, in the order that they come in; what runs beside other work of its
// stream, as nodes of a graph may, is on a further one. Work that is tied to no call is left out.
class DeviceEvents {
 public:
  explicit DeviceEvents(std::uint16_t first_thread) : next_thread_(first_thread) {}

  // `work` as ActivityJoin::take() gives it. A stream's newest run is kept: more of it may come.
  void add(const std::vector<DeviceActivity>& work);
  // Of what was added since the last time; `is_all`: nothing more comes. Thread by thread, in the
  // order of their ends, what is inside of others first.
  std::vector<Event> take(bool is_all);

 private:
  using StreamId = std::pair<std::uint32_t, std::uint32_t>;  // (device, stream)
  struct Span {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Run {
    std::uint32_t call = kNoCall;
    std::uint32_t graph_correlation = 0;  // 0: launched by itself
    Span all = {};
    std::vector<Span> work = {};
  };
  struct Thread {
    std::uint16_t number = 0;
    std::int64_t end_ns = 0;  // of the last run on it
  };
  struct StreamRuns {
    std::vector<Run> runs;  // by begin
    std::vector<Thread> threads;
  };
  static Run* run_of(StreamRuns& stream, const DeviceActivity& work);
  std::uint16_t thread_of(StreamRuns& stream, const Span& run);

  std::uint16_t next_thread_;
  std::map<StreamId, StreamRuns> streams_;
};

}  // namespace trainscope::profiler
