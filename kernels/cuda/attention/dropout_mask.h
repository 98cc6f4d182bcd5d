// The mask of dropout as a function of a counter: any run of elements can be drawn, and drawn a
// second time. The numbers are those of the CPU's kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/api/params.h"
#include "kernels/api/random.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

// Keeps element i where random_uniform(key, stream, i) >= ratio. Each step of a stream has a key of
// its own, drawn from that stream; the number of the step is read on the device.
struct DropoutMask {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  const std::int64_t* step = nullptr;
  std::uint32_t threshold = 0;  // 0: everything is kept
  float scale = 1.0F;           // what a kept element is multiplied with

  __device__ bool keeps_all() const { return threshold == 0; }
  // As random_u64(seed, stream, step).
  __device__ std::uint64_t key() const {
    const auto number = static_cast<std::uint64_t>(*step);
    const auto words = random_block(seed, stream, number / 2);
    const bool second = number % 2 == 1;
    const std::uint64_t high = second ? words[3] : words[1];
    return (high << 32) | (second ? words[2] : words[0]);
  }
  __device__ bool keeps(std::uint32_t word) const { return (word >> 8) >= threshold; }
};

inline DropoutMask dropout_mask(const DropoutParams& params, const std::int64_t* step) {
  return {.seed = params.seed,
          .stream = params.stream,
          .step = step,
          .threshold = static_cast<std::uint32_t>(std::ceil(params.ratio * 0x1p24)),
          .scale = static_cast<float>(1.0 / (1.0 - params.ratio))};
}

// The random words of elements [first, first + 4). They are of one Philox block, or of two.
struct FourWords {
  std::uint32_t word[4];
};
__device__ inline FourWords four_words(std::uint64_t key, std::uint64_t stream,
                                       std::uint64_t first) {
  const auto block = random_block(key, stream, first / 4);
  const auto shift = static_cast<unsigned>(first % 4);
  if (shift == 0) return {{block[0], block[1], block[2], block[3]}};
  const auto next = random_block(key, stream, first / 4 + 1);
  std::uint32_t words[7] = {block[0], block[1], block[2], block[3], next[0], next[1], next[2]};
  // Shifted by constants, so that the words stay in registers.
  if ((shift & 1U) != 0) {
    for (int i = 0; i < 6; ++i) words[i] = words[i + 1];
  }
  if ((shift & 2U) != 0) {
    for (int i = 0; i < 5; ++i) words[i] = words[i + 2];
  }
  return {{words[0], words[1], words[2], words[3]}};
}

}  // namespace trainscope::cuda
