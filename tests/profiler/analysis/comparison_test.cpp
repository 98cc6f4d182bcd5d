// Two profiles: medians, what is significant, and rows that one of them lacks.
#include "profiler/analysis/comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace trainscope::profiler {
namespace {

Breakdown table_of(std::vector<double> step_ns, std::vector<BreakdownRow> rows) {
  return {.rows = std::move(rows),
          .steps = static_cast<std::int64_t>(step_ns.size()),
          .step_ns = std::move(step_ns)};
}

TEST_CASE("spread: the median, and the median distance from it") {
  const Spread spread = spread_of(std::vector<double>{1.0, 2.0, 3.0, 4.0, 100.0});
  CHECK(spread.median == 3.0);
  CHECK(spread.deviation == 1.0);  // of 2, 1, 0, 1, 97
  CHECK(spread.standard_error() == doctest::Approx(1.253 * 1.4826 / std::sqrt(5.0)));
  CHECK(spread_of({}).median == 0.0);
  CHECK(spread_of({}).standard_error() == 0.0);
}

TEST_CASE("comparison: rows by name, those that one lacks with nothing there") {
  const Breakdown a = table_of({100, 101, 99}, {{.name = "x", .step_ns = {10, 11, 12}},
                                                {.name = "gone", .step_ns = {5, 5, 5}}});
  const Breakdown b = table_of({110, 111, 109}, {{.name = "new", .step_ns = {7, 7, 7}},
                                                 {.name = "x", .step_ns = {12, 11, 10}}});
  const Comparison both = compare_profiles(a, b);
  CHECK(both.step.difference_ns() == 10.0);
  CHECK(both.step.significance() > kSignificant);
  REQUIRE(both.rows.size() == 3);
  CHECK(both.rows[0].name == "x");
  CHECK(both.rows[0].significance() == 0.0);
  CHECK(both.rows[1].name == "gone");
  CHECK(both.rows[1].difference_ns() == -5.0);
  CHECK(both.rows[1].significance() < -kSignificant);  // it never varied
  CHECK(both.rows[2].name == "new");
  CHECK(both.rows[2].a.count == 0);
  CHECK(both.rows[2].difference_ns() == 7.0);
}

TEST_CASE("comparison: what steps differ by anyway is not significant") {
  const Breakdown a = table_of({100, 130, 80, 115, 90}, {});
  const Breakdown b = table_of({105, 135, 85, 120, 95}, {});
  CHECK(compare_profiles(a, b).step.difference_ns() == 5.0);
  CHECK(compare_profiles(a, b).step.significance() < kSignificant);
}

}  // namespace
}  // namespace trainscope::profiler
