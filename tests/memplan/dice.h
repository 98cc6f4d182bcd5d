// Whole numbers from a seed, the same with any standard library.
#pragma once

#include <cstdint>
#include <random>

namespace trainscope::memplan::testing {

// std::uniform_int_distribution differs between libraries; this does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace trainscope::memplan::testing
