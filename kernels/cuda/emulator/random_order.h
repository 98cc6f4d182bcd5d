// Random orders of threads and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace trainscope::cuda::emulator {

// The next number of the sequence that `state` is in: SplitMix64 of Steele, Lea and Flood 2014.
inline std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

inline void shuffle_order(std::vector<unsigned>& order, std::uint64_t& state) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[next_random(state) % i]);
  }
}

}  // namespace trainscope::cuda::emulator
