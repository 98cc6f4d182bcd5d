// Which clock there is, and how its ticks become nanoseconds.
#include "profiler/record/clock.h"

#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trainscope::profiler {

TickSource best_tick_source() {
#if defined(__x86_64__)
  // Intel SDM volume 3, 18.17.1: leaf 80000007H, EDX bit 8; AMD APM volume 2, 13.2.4 has the same.
  constexpr unsigned kPowerLeaf = 0x80000007U;
  constexpr unsigned kInvariant = 1U << 8U;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0) {
    return TickSource::kTimeStampCounter;
  }
#endif
  return TickSource::kMonotonicClock;
}

ClockPair Clock::pair() const {
  ClockPair best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::int64_t before = monotonic_ns();
    const std::uint64_t now = ticks();
    const std::int64_t after = monotonic_ns();
    if (after - before >= least) continue;
    least = after - before;
    best = {.ticks = now, .ns = before + least / 2};
  }
  return best;
}

void TickMap::add(const ClockPair& pair) {
  if (is_due(pair.ns) && pair.ticks > pairs_.back().ticks) pairs_.push_back(pair);
}

std::int64_t TickMap::ns(std::uint64_t ticks) const {
  if (pairs_.size() < 2) {
    return static_cast<std::int64_t>(ticks) - static_cast<std::int64_t>(pairs_[0].ticks);
  }
  // Most are of the last line; before the first pair and after the last one lines go on.
  std::size_t to = pairs_.size() - 1;
  while (to > 1 && ticks < pairs_[to - 1].ticks) --to;
  const ClockPair& a = pairs_[to - 1];
  const ClockPair& b = pairs_[to];
  const double rate = static_cast<double>(b.ns - a.ns) / static_cast<double>(b.ticks - a.ticks);
  const auto since = static_cast<double>(static_cast<std::int64_t>(ticks - a.ticks));
  return a.ns - pairs_[0].ns + std::llround(since * rate);
}

}  // namespace trainscope::profiler
