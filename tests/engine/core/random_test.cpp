// Tests of the counter-based random numbers.
#include "kernels/api/random.h"

#include <doctest/doctest.h>

#include <set>

namespace trainscope {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The answers that come with Random123, the library of the authors (file kat_vectors).
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

TEST_CASE("random: Philox4x32-10 gives the published numbers") {
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: elements are the words of the blocks in order") {
  const Words block = random_block(5, 6, 7);
  for (std::size_t i = 0; i < 4; ++i) CHECK(random_u32(5, 6, 28 + i) == block[i]);
  CHECK(random_u64(5, 6, 14) == ((std::uint64_t{block[1]} << 32) | block[0]));
  CHECK(random_u64(5, 6, 15) == ((std::uint64_t{block[3]} << 32) | block[2]));
}

TEST_CASE("random: all 64 bits of seed, stream and index matter") {
  std::set<std::uint64_t> seen;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    seen.insert(random_u64(one, 0, 0));
    seen.insert(random_u64(0, one, 0));
    seen.insert(random_u64(0, 0, one));
  }
  CHECK(seen.size() == 3 * 64);
}

TEST_CASE("random: uniform numbers are in [0,1) with the right mean and variance") {
  constexpr int kCount = 100'000;
  double sum = 0;
  double squares = 0;
  double sum_f64 = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const float u = random_uniform(1, 2, i);
    const double v = random_uniform_f64(1, 3, i);
    REQUIRE((u >= 0 && u < 1 && v >= 0 && v < 1));
    sum += u;
    squares += double{u} * u;
    sum_f64 += v;
  }
  // Five standard errors: 5 / sqrt(12 n) = 0.0046.
  CHECK(sum / kCount == doctest::Approx(0.5).epsilon(0.01));
  CHECK(sum_f64 / kCount == doctest::Approx(0.5).epsilon(0.01));
  CHECK(squares / kCount == doctest::Approx(1.0 / 3).epsilon(0.015));
}

TEST_CASE("random: the largest words stay below one") {
  CHECK(unit_float(0xffffffff) == 1.0F - 0x1p-24F);
  CHECK(unit_float(0) == 0.0F);
}

TEST_CASE("random: normal numbers have mean 0, variance 1 and the tails of a normal") {
  constexpr int kCount = 100'000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double neighbours = 0;
  int beyond_two = 0;
  double last = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = random_normal(9, 1, i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbours += x * last;
    last = x;
    if (std::abs(x) > 2) ++beyond_two;
  }
  CHECK(std::abs(sum / kCount) < 0.016);                           // 5 / sqrt(n)
  CHECK(squares / kCount == doctest::Approx(1.0).epsilon(0.023));  // 5 sqrt(2 / n)
  CHECK(fourth / kCount == doctest::Approx(3.0).epsilon(0.052));   // 5 sqrt(96 / n) / 3
  CHECK(std::abs(neighbours / kCount) < 0.016);                    // the pair is independent
  CHECK(beyond_two / double{kCount} == doctest::Approx(0.0455).epsilon(0.08));
}

TEST_CASE("random: below a bound, all values occur about equally often") {
  std::array<int, 7> counts{};
  constexpr int kCount = 70'000;
  for (std::uint64_t i = 0; i < kCount; ++i) ++counts.at(random_below(3, 4, i, 7));
  for (const int count : counts) CHECK(std::abs(count - kCount / 7) < 500);
  CHECK(random_below(1, 1, 1, 1) == 0);
  CHECK(random_below(1, 1, 1, UINT64_MAX) < UINT64_MAX);
}

}  // namespace
}  // namespace trainscope
