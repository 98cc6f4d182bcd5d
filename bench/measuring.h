// What the benches measure with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainscope::bench {

// Zeroed memory that begins with a cache line.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : memory_(bytes + kLine) {
    const std::size_t past_line = reinterpret_cast<std::uintptr_t>(memory_.data()) % kLine;
    first_ = memory_.data() + (kLine - past_line) % kLine;
  }
  // A vector that moves takes its memory along, a copy does not.
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;

  std::byte* bytes() { return first_; }
  float* floats() { return reinterpret_cast<float*>(first_); }

 private:
  static constexpr std::size_t kLine = 64;

  std::vector<std::byte> memory_;
  std::byte* first_;
};

// What one call took.
template <class F>
double milliseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

// The least and the median (of an even number the greater of the two in the middle) of what rounds
// took.
struct Rounds {
  std::vector<double> times;

  double least() const { return *std::ranges::min_element(times); }
  double median() const {
    std::vector<double> sorted = times;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

}  // namespace trainscope::bench
