// Time for events: the processor's time stamp counter where it runs at one rate on all cores, else
// the system's monotonic clock, which costs more.
#pragma once

#include <cstdint>
#include <ctime>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace trainscope::profiler {

// The same moment by both clocks.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;  // of the monotonic clock
};

enum class TickSource : std::uint8_t { kTimeStampCounter, kMonotonicClock };

// kTimeStampCounter where the processor says that it is invariant.
TickSource best_tick_source();

class Clock {
 public:
  explicit Clock(TickSource source = best_tick_source()) : source_(source) {}

  TickSource source() const { return source_; }
  std::uint64_t ticks() const {
#if defined(__x86_64__)
    if (source_ == TickSource::kTimeStampCounter) [[likely]]
      return __rdtsc();
#endif
    return static_cast<std::uint64_t>(monotonic_ns());
  }
  // Both clocks, read as near to each other as several attempts allow.
  ClockPair pair() const;

  static std::int64_t monotonic_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
  }

 private:
  TickSource source_;
};

// What a thread reads never goes back: its processor's counter may, by a little, where a hypervisor
// moves it to another one in between, and spans would end before they began. `last` is what it read
// last.
inline std::uint64_t in_order(std::uint64_t ticks, std::uint64_t& last) {
  if (ticks > last) last = ticks;
  return last;
}

// Ticks as nanoseconds since the first pair: a line from each pair to the next, so a later pair
// changes nothing before it, and what was in order stays in order.
class TickMap {
 public:
  // Of a clock without two pairs yet, ticks are nanoseconds.
  explicit TickMap(const ClockPair& first) : pairs_{first} {}

  // At least kLeastSpanNs after the last one; others are left out.
  void add(const ClockPair& pair);
  std::int64_t ns(std::uint64_t ticks) const;
  std::int64_t first_ns() const { return pairs_.front().ns; }  // of the monotonic clock
  // Whether a pair of now would be taken.
  bool is_due(std::int64_t monotonic_ns) const {
    return monotonic_ns - pairs_.back().ns >= kLeastSpanNs;
  }

  static constexpr std::int64_t kLeastSpanNs = 2'000'000;  // a pair is some 50 ns wrong

 private:
  std::vector<ClockPair> pairs_;
};

}  // namespace trainscope::profiler
