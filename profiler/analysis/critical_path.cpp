// The latest end of all, and back from there.
#include "profiler/analysis/critical_path.h"

#include <algorithm>
#include <cmath>

#include "engine/core/numbers.h"

namespace trainscope::profiler {
namespace {

std::int64_t median_ns(const CallTime& call) { return std::llround(median(call.ns.doubles())); }

}  // namespace

CriticalPath critical_path(const StepTimes& times, const PlanView& plan) {
  CriticalPath path;
  std::vector<std::int64_t> end(plan.calls.size(), 0);
  std::vector<std::uint32_t> before(plan.calls.size(), kNoRow);  // that it starts after
  std::vector<std::uint32_t> last;                               // by stream
  std::uint32_t latest = kNoRow;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    if (last.size() <= call.stream) {
      last.resize(call.stream + std::size_t{1}, kNoRow);
      path.stream_ns.resize(last.size(), 0);
      path.stream_all_ns.resize(last.size(), 0);
    }
    std::int64_t start = 0;
    const auto starts_after = [&](std::uint32_t other) {
      if (other == kNoRow || (before[i] != kNoRow && end[other] <= start)) return;
      before[i] = other;
      start = end[other];
    };
    starts_after(last[call.stream]);
    for (const std::uint32_t awaited : rows_of(plan.waits, call.waits)) starts_after(awaited);
    const std::int64_t ns = median_ns(times.calls[i]);
    end[i] = start + ns;
    path.stream_all_ns[call.stream] += ns;
    last[call.stream] = i;
    if (latest == kNoRow || end[i] > end[latest]) latest = i;
  }
  for (std::uint32_t at = latest; at != kNoRow; at = before[at]) {
    path.calls.push_back(at);
    path.stream_ns[plan.calls[at].stream] += median_ns(times.calls[at]);
  }
  std::ranges::reverse(path.calls);
  path.ns = latest == kNoRow ? 0 : end[latest];
  return path;
}

}  // namespace trainscope::profiler
