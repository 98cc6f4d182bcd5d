// Pieces of work are put together to runs of calls, and runs side by side on threads.
#include "profiler/cupti/device_events.h"

#include <algorithm>
#include <cstddef>

namespace trainscope::profiler {

// Where a call ends and runs anew right behind, by itself, both are one run. In a replay of a graph
// each call runs once, whatever runs in between.
DeviceEvents::Run* DeviceEvents::run_of(StreamRuns& stream, const DeviceActivity& work) {
  const bool is_node = work.graph_node != 0;
  for (auto run = stream.runs.rbegin(); run != stream.runs.rend(); ++run) {
    const std::uint32_t correlation = is_node ? work.correlation : 0;
    if (run->graph_correlation != correlation) return nullptr;
    if (run->call == work.call) return &*run;
    if (!is_node) return nullptr;
  }
  return nullptr;
}

void DeviceEvents::add(const std::vector<DeviceActivity>& work) {
  for (const DeviceActivity& one : work) {
    if (one.call >= kOutsideCalls) continue;
    StreamRuns& stream = streams_[{one.device, one.stream}];
    const Span span{.begin_ns = one.begin_ns, .end_ns = one.end_ns};
    Run* run = run_of(stream, one);
    if (run == nullptr) {
      stream.runs.push_back({.call = one.call,
                             .graph_correlation = one.graph_node != 0 ? one.correlation : 0,
                             .all = span});
      run = &stream.runs.back();
    }
    run->all.begin_ns = std::min(run->all.begin_ns, span.begin_ns);
    run->all.end_ns = std::max(run->all.end_ns, span.end_ns);
    run->work.push_back(span);
  }
}

std::uint16_t DeviceEvents::thread_of(StreamRuns& stream, const Span& run) {
  auto found = std::ranges::find_if(
      stream.threads, [&](const Thread& each) { return each.end_ns <= run.begin_ns; });
  if (found == stream.threads.end()) {
    found = stream.threads.insert(found, {.number = next_thread_++});
  }
  found->end_ns = run.end_ns;
  return found->number;
}

std::vector<Event> DeviceEvents::take(bool is_all) {
  std::vector<Event> events;
  const auto add_event = [&](const Span& span, std::uint32_t call, EventKind kind,
                             std::uint16_t thread) {
    events.push_back({.begin_ns = span.begin_ns,
                      .value = static_cast<std::uint64_t>(span.end_ns - span.begin_ns),
                      .id = call,
                      .kind = kind,
                      .thread = thread});
  };
  for (auto& [id, stream] : streams_) {
    const std::size_t kept = is_all ? 0 : std::min<std::size_t>(1, stream.runs.size());
    const auto end = stream.runs.end() - static_cast<std::ptrdiff_t>(kept);
    for (auto run = stream.runs.begin(); run != end; ++run) {
      const std::uint16_t thread = thread_of(stream, run->all);
      for (const Span& each : run->work) {
        add_event(each, run->call, EventKind::kDeviceWork, thread);
      }
      add_event(run->all, run->call, EventKind::kCall, thread);
    }
    stream.runs.erase(stream.runs.begin(), end);
  }
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.end_ns() < b.end_ns();
  });
  return events;
}

}  // namespace trainscope::profiler
