// When a search gives up.
#pragma once

#include <chrono>
#include <stop_token>
#include <utility>

namespace trainscope::memplan {

// At a moment, or once somebody asks for it.
class Deadline {
 public:
  Deadline() = default;  // never
  // So many seconds from now; the clock is not looked at where they are as good as unlimited.
  explicit Deadline(double seconds, std::stop_token stop = {}) : stop_(std::move(stop)) {
    constexpr double kForever = 1e9;  // about 30 years; far from overflowing the clock
    if (seconds >= kForever) return;
    at_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  [[nodiscard]] bool expired() const {
    if (stop_.stop_requested()) return true;
    return at_ != Clock::time_point::max() && Clock::now() >= at_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point at_ = Clock::time_point::max();
  std::stop_token stop_;
};

}  // namespace trainscope::memplan
