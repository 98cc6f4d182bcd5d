// A small counter-based generator, the same on every machine (SplitMix64: Steele et al. 2014).
#pragma once

#include <cstdint>

namespace trainscope::memplan {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }
  // In first..last, both included; uniform but for 2^-32.
  std::int32_t between(std::int32_t first, std::int32_t last) {
    const auto range = static_cast<std::uint64_t>(last - first) + 1;
    return first + static_cast<std::int32_t>(((next() >> 32) * range) >> 32);
  }
  // In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace trainscope::memplan
