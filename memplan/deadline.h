// The end of a search that has so many seconds.
#pragma once

#include <chrono>

namespace trainscope::memplan {

// time_point::max(), which no search looks at the clock for, where they are as good as unlimited.
inline std::chrono::steady_clock::time_point deadline_after(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kForever = 1e9;  // about 30 years; far from overflowing the clock
  if (seconds >= kForever) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace trainscope::memplan
