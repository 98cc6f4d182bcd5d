// The highest point of the bytes alive.
#include "profiler/analysis/peak.h"

#include <algorithm>

namespace trainscope::profiler {

MemoryPeak memory_peak(const PlanView& plan) {
  MemoryPeak peak;
  const std::vector<std::int64_t> live = live_bytes(plan);
  if (live.empty()) return peak;
  const auto highest = std::ranges::max_element(live);
  peak.time = static_cast<std::uint32_t>(highest - live.begin());
  peak.live_bytes = *highest;
  const auto call = std::ranges::find(plan.calls, peak.time, &PlanCall::time);
  if (call != plan.calls.end()) peak.call = static_cast<std::uint32_t>(call - plan.calls.begin());
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    const bool is_alive = buffer.begin <= peak.time && peak.time < buffer.end;
    if (!is_alive || buffer.external != 0 || buffer.space != PlanSpaceKind::kDevice) continue;
    peak.alive.push_back(i);
    peak.bytes_of[static_cast<std::size_t>(buffer.holds)] += buffer.bytes;
  }
  std::ranges::stable_sort(peak.alive, std::ranges::greater{},
                           [&plan](std::uint32_t i) { return plan.buffers[i].bytes; });
  return peak;
}

}  // namespace trainscope::profiler
