// Steps: their median, what they take undisturbed, and how that moves from block to block.
#include "profiler/analysis/spread.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace trainscope::profiler {
namespace {

TEST_CASE("spread: the median, and the median distance from it") {
  const Spread spread = spread_of(std::vector<double>{1.0, 2.0, 3.0, 4.0, 100.0});
  CHECK(spread.median == 3.0);
  CHECK(spread.deviation == 1.0);             // of 2, 1, 0, 1, 97
  CHECK(spread.low == doctest::Approx(1.4));  // four tenths of the way from the first to the second
  CHECK(spread.drift == doctest::Approx(1.253 * 1.4826 / 3.0 / std::sqrt(5.0)));
  CHECK(spread.count == 5);
}

TEST_CASE("spread: of nothing it is nothing, of one step that step") {
  CHECK(spread_of({}).median == 0.0);
  CHECK(spread_of({}).drift == 0.0);
  const Spread one = spread_of(std::vector<double>{7.0});
  CHECK(one.low == 7.0);
  CHECK(one.drift == 0.0);
}

TEST_CASE("spread: steps that others disturbed do not move what an undisturbed one takes") {
  std::vector<double> steps(80, 100.0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % 5 != 0) steps[i] = 1000.0 + static_cast<double>(i);
  }
  const Spread spread = spread_of(steps);
  CHECK(spread.median > 1000.0);
  CHECK(spread.low == 100.0);
  CHECK(spread.drift == 0.0);
}

TEST_CASE(
    "spread: a run that becomes slower in its course drifts, one that varies by step does not") {
  std::vector<double> slower;
  std::vector<double> restless;
  for (int i = 0; i < 80; ++i) {
    slower.push_back(100.0 + static_cast<double>(i / 10));  // 100 to 107: ten steps each
    restless.push_back(i % 2 == 0 ? 100.0 : 107.0);
  }
  CHECK(spread_of(slower).drift == doctest::Approx(1.4826 * 2.0 / 103.5));
  CHECK(spread_of(restless).drift == 0.0);
}

TEST_CASE("spread: of many steps the undisturbed ones are a hundredth, of few a tenth") {
  CHECK(low_share(10) == 0.1);
  CHECK(low_share(40) == 0.1);
  CHECK(low_share(100) == 0.04);
  CHECK(low_share(4000) == 0.01);
}

TEST_CASE("spread: what each block of steps takes undisturbed, of one run with steps enough") {
  std::vector<double> steps;
  for (int i = 0; i < 80; ++i) steps.push_back(100.0 + static_cast<double>(i / 10));
  CHECK(spread_of(steps).block_lows == std::vector<double>{100, 101, 102, 103, 104, 105, 106, 107});
  CHECK(spread_of(std::vector<double>(24, 7.0)).block_lows == std::vector<double>(4, 7.0));
  CHECK(spread_of(std::vector<double>(23, 7.0)).block_lows.empty());
  CHECK(spread_of(std::vector<double>(80, 0.0)).block_lows.empty());
  std::vector<double> twice = steps;
  twice.insert(twice.end(), steps.begin(), steps.end());
  CHECK(spread_of(twice, std::vector<std::size_t>{80, 80}).block_lows.empty());
}

TEST_CASE("spread: of several runs, how far they are apart over the root of their number") {
  std::vector<double> steps(40, 100.0);
  steps.insert(steps.end(), 40, 110.0);
  const Spread spread = spread_of(steps, std::vector<std::size_t>{40, 40});
  CHECK(spread.runs == 2);
  CHECK(spread.low == doctest::Approx(std::sqrt(100.0 * 110.0)));
  const double apart = std::log(110.0 / 100.0) / std::sqrt(2.0);  // of two: a standard deviation
  CHECK(spread.drift == doctest::Approx(apart / std::sqrt(2.0)));
  CHECK(spread_of(steps, std::vector<std::size_t>{80}).low == 100.0);
  CHECK(spread_of(steps).runs == 1);
  // A row that one of the runs lacks is judged as steps of one.
  std::vector<double> half(40, 0.0);
  half.insert(half.end(), 360, 50.0);
  CHECK(spread_of(half, std::vector<std::size_t>{40, 360}).runs == 1);
  std::vector<double> rare(79, 50.0);
  rare.insert(rare.end(), 321, 60.0);
  rare[40] = 0.0;
  CHECK(spread_of(rare, std::vector<std::size_t>{41, 359}).block_lows.empty());
}

}  // namespace
}  // namespace trainscope::profiler
