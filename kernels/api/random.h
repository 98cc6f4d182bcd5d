// Counter-based random numbers: pure functions of (seed, stream, index), the same on every machine.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace trainscope {

// Four random words from a 128-bit counter and a 64-bit key: Philox4x32-10 of Salmon, Moraes, Dror,
// Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Block `block` of a stream. A stream is one use of randomness under a seed (a node's dropout mask,
// the order of one epoch, one parameter's initial values): give each its own number, and draw one
// kind of number from it only, because the functions below share the blocks.
constexpr std::array<std::uint32_t, 4> random_block(std::uint64_t seed, std::uint64_t stream,
                                                    std::uint64_t block) {
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// Element `index`: four to a block, so a loop over elements may draw block i/4 once.
constexpr std::uint32_t random_u32(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return random_block(seed, stream, index / 4)[index % 4];
}

// Two to a block.
constexpr std::uint64_t random_u64(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto words = random_block(seed, stream, index / 2);
  const std::size_t first = 2 * (index % 2);
  return (std::uint64_t{words[first + 1]} << 32) | words[first];
}

// A word as a float in [0,1): a multiple of 2^-24.
constexpr float unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// Uniform in [0,1); the element of random_u32.
constexpr float random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return unit_float(random_u32(seed, stream, index));
}

// Uniform in [0,1) with 53 bits; the element of random_u64.
constexpr double random_uniform_f64(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(random_u64(seed, stream, index) >> 11) * 0x1p-53;
}

// Uniform in 0..bound-1, bound > 0. By multiplication (Lemire 2019 without the rejection): the bias
// is at most bound / 2^64.
constexpr std::uint64_t random_below(std::uint64_t seed, std::uint64_t stream, std::uint64_t index,
                                     std::uint64_t bound) {
  const auto wide = static_cast<unsigned __int128>(random_u64(seed, stream, index)) * bound;
  return static_cast<std::uint64_t>(wide >> 64);
}

// Standard normals 2 * pair and 2 * pair + 1, from one block: Box and Muller 1958.
inline std::array<double, 2> random_normal_pair(std::uint64_t seed, std::uint64_t stream,
                                                std::uint64_t pair) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  // In (0,1], so that the logarithm is finite.
  const double radius_draw = 1.0 - random_uniform_f64(seed, stream, 2 * pair);
  const double angle = kTwoPi * random_uniform_f64(seed, stream, 2 * pair + 1);
  const double radius = std::sqrt(-2.0 * std::log(radius_draw));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Standard normal; a loop over elements had better draw pairs.
inline double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return random_normal_pair(seed, stream, index / 2)[index % 2];
}

}  // namespace trainscope
