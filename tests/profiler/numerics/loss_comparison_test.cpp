// Curves of one seed, of other seeds, and the numbers that tables of Student's t have.
#include "profiler/numerics/loss_comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernels/api/random.h"

namespace trainscope::profiler {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

LossCurve falling(double error_from, std::int64_t from) {
  LossCurve curve;
  for (std::int64_t step = 1; step <= 20; ++step) {
    const double loss = 2.0 + 1.0 / static_cast<double>(step);
    curve[step] = loss * (step >= from ? 1.0 + error_from : 1.0);
  }
  return curve;
}

// A curve of 100 steps whose every loss is `shift` higher than chance has it.
LossCurve noisy(std::uint64_t seed, double shift) {
  LossCurve curve;
  const double of_run = static_cast<double>(random_u64(seed, 7, 1) % 1000) / 1000.0 - 0.5;
  for (std::int64_t step = 1; step <= 100; ++step) {
    const auto draw =
        static_cast<double>(random_u64(seed, 7, 1 + static_cast<std::uint64_t>(step)) % 1000);
    curve[step] = 2.0 + shift + 0.02 * of_run + 0.1 * (draw / 1000.0 - 0.5);
  }
  return curve;
}

TEST_CASE("losses: of one seed the first step beyond 1e-5 is found") {
  const PairedLosses same = compare_paired(falling(0.0, 1), falling(9e-6, 3));
  CHECK(same.steps.size() == 20);
  CHECK_FALSE(same.first.has_value());
  CHECK(same.steps[same.largest].relative == doctest::Approx(9e-6).epsilon(0.01));
  const PairedLosses other = compare_paired(falling(0.0, 1), falling(2e-5, 7));
  REQUIRE(other.first.has_value());
  CHECK(other.steps[*other.first].step == 7);
}

TEST_CASE("losses: only steps that both have are compared") {
  const PairedLosses both =
      compare_paired({{1, 2.0}, {2, 1.0}, {5, 0.5}}, {{2, 1.0}, {5, 0.5}, {9, 3.0}});
  REQUIRE(both.steps.size() == 2);
  CHECK(both.steps[0].step == 2);
  CHECK_FALSE(both.first.has_value());
}

TEST_CASE("losses: a loss near 0 is held against the first one") {
  CHECK_FALSE(compare_paired({{1, 2.0}, {9, 1e-5}}, {{1, 2.0}, {9, 1.01e-5}}).first.has_value());
  CHECK(compare_paired({{1, 2.0}, {9, 1e-2}}, {{1, 2.0}, {9, 1.01e-2}}).first.has_value());
}

TEST_CASE("losses: NaN in both is the same, in one alone it differs") {
  CHECK_FALSE(compare_paired({{1, 2.0}, {2, kNaN}}, {{1, 2.0}, {2, kNaN}}).first.has_value());
  const PairedLosses one = compare_paired({{1, 2.0}, {2, kNaN}}, {{1, 2.0}, {2, 1.5}});
  REQUIRE(one.first.has_value());
  CHECK(one.steps[*one.first].step == 2);
}

// From tables: t of 97.5 % is 12.706 at 1 degree of freedom, 2.776 at 4, 2.228 at 10, 1.984 at 100.
TEST_CASE("losses: Student's t as tables have it") {
  CHECK(student_two_sided(12.7062, 1.0) == doctest::Approx(0.05).epsilon(1e-4));
  CHECK(student_two_sided(2.77645, 4.0) == doctest::Approx(0.05).epsilon(1e-4));
  CHECK(student_two_sided(2.22814, 10.0) == doctest::Approx(0.05).epsilon(1e-4));
  CHECK(student_two_sided(1.98397, 100.0) == doctest::Approx(0.05).epsilon(1e-4));
  CHECK(student_two_sided(4.60409, 4.0) == doctest::Approx(0.01).epsilon(1e-4));
  CHECK(student_two_sided(0.0, 3.0) == doctest::Approx(1.0));
}

TEST_CASE("losses: of other seeds the same curve is the same, a higher one is not") {
  std::vector<LossCurve> a;
  std::vector<LossCurve> b;
  std::vector<LossCurve> higher;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    a.push_back(noisy(seed, 0.0));
    b.push_back(noisy(seed + 100, 0.0));
    higher.push_back(noisy(seed + 200, 0.1));
  }
  const WelchLosses same = compare_by_welch(a, b);
  CHECK(same.steps == 100);
  CHECK(same.windows.size() == kMostWindows);
  CHECK_FALSE(same.first.has_value());
  const WelchLosses other = compare_by_welch(a, higher);
  REQUIRE(other.first.has_value());
  CHECK(other.windows[*other.first].mean_b - other.windows[*other.first].mean_a ==
        doctest::Approx(0.1).epsilon(0.3));
}

// One in a hundred is allowed by kWelchLevel.
TEST_CASE("losses: pairs of sides of one program rarely differ") {
  int alarms = 0;
  for (std::uint64_t pair = 0; pair < 200; ++pair) {
    std::vector<LossCurve> a;
    std::vector<LossCurve> b;
    for (std::uint64_t run = 0; run < 4; ++run) {
      a.push_back(noisy(1000 + 10 * pair + run, 0.0));
      b.push_back(noisy(1005 + 10 * pair + run, 0.0));
    }
    alarms += compare_by_welch(a, b).first ? 1 : 0;
  }
  CHECK(alarms <= 6);
}

TEST_CASE("losses: runs that end in NaN on one side alone differ") {
  std::vector<LossCurve> a = {noisy(1, 0.0), noisy(2, 0.0)};
  std::vector<LossCurve> b = {noisy(3, 0.0), noisy(4, 0.0)};
  b[1][100] = kNaN;
  const WelchLosses one = compare_by_welch(a, b);
  REQUIRE(one.first.has_value());
  CHECK(one.windows[*one.first].to == 100);
  a[0][100] = kNaN;
  CHECK(compare_by_welch(a, b).windows.size() == kMostWindows - 1);
}

}  // namespace
}  // namespace trainscope::profiler
