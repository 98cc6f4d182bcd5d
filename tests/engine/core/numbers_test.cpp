// Medians, and round numbers within ranges.
#include "engine/core/numbers.h"

#include <doctest/doctest.h>

#include <cmath>

namespace trainscope {
namespace {

constexpr double kKibi = 1024.0;
constexpr double kMebi = kKibi * kKibi;

TEST_CASE("median: the middle one, or the mean of the two in the middle") {
  CHECK(median({3.0}) == 3.0);
  CHECK(median({9.0, 1.0, 2.0}) == 2.0);
  CHECK(median({9.0, 1.0, 2.0, 4.0}) == 3.0);
  CHECK(median({7.0, 7.0, 1.0, 7.0, 9.0, 0.0}) == 7.0);
  CHECK(median({}) == 0.0);
}

TEST_CASE("median_deviation: half of the values are nearer, however far the others are") {
  CHECK(median_deviation({1.0, 2.0, 3.0, 4.0, 1000.0}, 3.0) == 1.0);
  CHECK(median_deviation({1.0, 3.0}, 0.0) == 2.0);
  CHECK(median_deviation({}, 1.0) == 0.0);
}

TEST_CASE("round numbers: steps are 1, 2 or 5 times a power of ten, as many as asked for") {
  CHECK(round_numbers(0.0, 10.0, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_numbers(0.0, 1.0, 2) == std::vector<double>{0.0, 0.5, 1.0});
  CHECK(round_numbers(0.3, 0.9, 3) == std::vector<double>{0.4, 0.6000000000000001, 0.8});
  CHECK(round_numbers(0.0, 97.0, 2) == std::vector<double>{0.0, 50.0});
  CHECK(round_numbers(-3.0, 3.0, 6) == std::vector<double>{-3, -2, -1, 0, 1, 2, 3});
}

TEST_CASE("round numbers: of bytes they are of binary units") {
  CHECK(round_byte_counts(10 * kMebi, 31 * kMebi, 3) ==
        std::vector<double>{10 * kMebi, 20 * kMebi, 30 * kMebi});
  // A sixth of 5 MiB is more than 500 KiB.
  CHECK(round_byte_counts(0.0, 5 * kMebi, 6) ==
        std::vector<double>{0, kMebi, 2 * kMebi, 3 * kMebi, 4 * kMebi, 5 * kMebi});
  CHECK(round_byte_counts(0.0, 3.0, 100) == std::vector<double>{0, 1, 2, 3});
  CHECK(round_byte_counts(0.0, 1000 * kKibi, 5) ==
        std::vector<double>{0, 200 * kKibi, 400 * kKibi, 600 * kKibi, 800 * kKibi, 1000 * kKibi});
}

TEST_CASE("round numbers: never more steps than asked for") {
  for (int most = 1; most < 12; ++most) {
    for (const double high : {1e-9, 0.3, 7.0, 1e6, 3.7e12}) {
      CAPTURE(most);
      CAPTURE(high);
      const std::size_t at_most = static_cast<std::size_t>(most) + 1;
      CHECK(round_numbers(0.0, high, most).size() <= at_most);
      CHECK(!round_numbers(0.0, high, most).empty());
      CHECK(round_byte_counts(high, 3 * high, most).size() <= at_most);
    }
  }
}

TEST_CASE("round numbers: powers of ten, fewer of them where there is no room") {
  CHECK(powers_of_ten(0.01, 100.0, 10).size() == 5);
  CHECK(powers_of_ten(0.01, 100.0, 3).size() == 3);
  CHECK(powers_of_ten(2.0, 9.0, 3).empty());
  CHECK(powers_of_ten(0.0, 9.0, 3).empty());
}

TEST_CASE("round numbers: a range that is narrow beside its numbers ends, each number once") {
  for (const double low : {0x1p53, 0x1p60, 1e300, -0x1p60}) {
    CAPTURE(low);
    const std::vector<double> numbers =
        round_numbers(low, std::nextafter(low, std::numeric_limits<double>::infinity()), 5);
    CHECK(numbers.size() <= 2);
  }
}

TEST_CASE("round numbers: a range without numbers has none") {
  CHECK(round_numbers(1.0, 1.0, 5).empty());
  CHECK(round_numbers(3.0, 1.0, 4).empty());
  CHECK(round_numbers(0.0, std::nan(""), 5).empty());
  CHECK(round_byte_counts(7.0, 7.0, 5).empty());
}

}  // namespace
}  // namespace trainscope
