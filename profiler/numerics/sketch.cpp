// A block's places and signs first, which vectors do, then its elements in their order.
#include "profiler/numerics/sketch.h"

#include <bit>
#include <cmath>
#include <cstddef>

#include "profiler/numerics/widest.h"

namespace trainscope::profiler {
namespace {

constexpr std::uint64_t kFirstFactor = 0x9E3779B97F4A7C15ull;
constexpr std::uint64_t kSecondFactor = 0xD6E8FEB86659FD93ull;

// `multiple`: of the first factor, by the index and one more.
constexpr std::uint64_t hash_of(std::uint64_t multiple, std::uint64_t seed) {
  const std::uint64_t h = multiple ^ seed;
  return (h ^ (h >> 32)) * kSecondFactor;
}
constexpr std::uint64_t bucket_of(std::uint64_t h) { return h >> 57; }
constexpr bool is_negative(std::uint64_t h) { return ((h >> 56) & 1) != 0; }

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kExponent = std::uint64_t{0x7FF} << 52;
constexpr std::size_t kBlock = 256;

// What a block adds to the sketch.
struct Block {
  std::array<std::uint64_t, kBlock> buckets{};
  std::array<double, kBlock> terms{};
};

constexpr std::array<std::uint64_t, kBlock> multiples() {
  std::array<std::uint64_t, kBlock> result{};
  for (std::uint64_t i = 0; i < kBlock; ++i) result[i] = i * kFirstFactor;
  return result;
}
constexpr std::array<std::uint64_t, kBlock> kMultiples = multiples();

template <class T>
void place_block(const T* elements, std::uint64_t first, std::uint64_t seed, Block& block) {
  const std::uint64_t multiple = (first + 1) * kFirstFactor;
#pragma GCC ivdep
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::uint64_t h = hash_of(multiple + kMultiples[i], seed);
    const auto bits = std::bit_cast<std::uint64_t>(double{elements[i]});
    block.buckets[i] = bucket_of(h);
    block.terms[i] = std::bit_cast<double>(bits ^ ((h << 7) & kSignBit));
  }
}

// Of an infinity or NaN all bits of the exponent are set.
bool all_finite(const Block& block) {
  std::uint64_t special = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(block.terms[i]) & kExponent;
    special |= exponent == kExponent ? 1U : 0U;
  }
  return special == 0;
}

template <class T>
std::int64_t add_one_by_one(std::span<const T> elements, std::uint64_t first, Sketch& sketch,
                            std::uint64_t seed) {
  std::int64_t left_out = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double element = elements[i];
    if (!std::isfinite(element)) {
      ++left_out;
      continue;
    }
    const SketchPlace place = sketch_place(first + i, seed);
    sketch[static_cast<std::size_t>(place.bucket)] += place.negative ? -element : element;
  }
  return left_out;
}

template <class T>
std::int64_t add_in_blocks(std::span<const T> elements, std::uint64_t first, Sketch& sketch,
                           std::uint64_t seed) {
  Block block;
  std::int64_t left_out = 0;
  std::size_t at = 0;
  for (; at + kBlock <= elements.size(); at += kBlock) {
    const T* const these = elements.data() + at;
    bool finite = false;
    in_widest_registers([&] {
      place_block(these, first + at, seed, block);
      finite = all_finite(block);
    });
    if (!finite) {
      left_out += add_one_by_one(elements.subspan(at, kBlock), first + at, sketch, seed);
      continue;
    }
    for (std::size_t i = 0; i < kBlock; ++i) sketch[block.buckets[i]] += block.terms[i];
  }
  return left_out + add_one_by_one(elements.subspan(at), first + at, sketch, seed);
}

}  // namespace

SketchPlace sketch_place(std::uint64_t index, std::uint64_t seed) {
  const std::uint64_t h = hash_of((index + 1) * kFirstFactor, seed);
  return {.bucket = static_cast<int>(bucket_of(h)), .negative = is_negative(h)};
}

std::int64_t add_to_sketch(std::span<const double> elements, std::uint64_t first, Sketch& sketch,
                           std::uint64_t seed) {
  return add_in_blocks(elements, first, sketch, seed);
}
std::int64_t add_to_sketch(std::span<const float> elements, std::uint64_t first, Sketch& sketch,
                           std::uint64_t seed) {
  return add_in_blocks(elements, first, sketch, seed);
}

double estimated_norm(const Sketch& sketch) {
  double sum = 0.0;
  for (const double bucket : sketch) sum += bucket * bucket;
  return std::sqrt(sum);
}

double estimated_distance(const Sketch& a, const Sketch& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace trainscope::profiler
