// Two profiles: medians, what is significant, and rows that one of them lacks.
#include "profiler/analysis/comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
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

Breakdown rows_of(const std::vector<std::pair<std::string, double>>& rows) {
  Breakdown table{.steps = 5, .step_ns = std::vector<double>(5, 0.0)};
  for (const auto& [name, ns] : rows) {
    BreakdownRow row{.name = name};
    for (std::size_t i = 0; i < 5; ++i) {
      row.step_ns.push_back(ns * (1.0 + 0.001 * static_cast<double>(i)));
      table.step_ns[i] += row.step_ns.back();
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

TEST_CASE("comparison: what all rows have in common is nobody's change") {
  const Breakdown a = rows_of({{"MatMul", 6000}, {"Gelu", 2000}, {"Add", 1500}, {"Loss", 500}});
  const Breakdown slower =
      rows_of({{"MatMul", 7200}, {"Gelu", 2400}, {"Add", 1800}, {"Loss", 600}});
  const Comparison common = compare_profiles(a, slower);
  CHECK(common.common_ratio == doctest::Approx(1.2));
  for (const ComparedRow& row : common.rows) CHECK_FALSE(common.is_changed(row));
  const Breakdown one = rows_of({{"MatMul", 7200}, {"Gelu", 2400}, {"Add", 1800}, {"Loss", 660}});
  const Comparison changed = compare_profiles(a, one);
  CHECK(changed.is_changed(changed.rows[3]));
  CHECK(changed.change(changed.rows[3]) == doctest::Approx(0.1).epsilon(0.01));
  for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(changed.is_changed(changed.rows[i]));
}

TEST_CASE("comparison: a row that is in one alone has changed, where it is large") {
  const Breakdown a = rows_of({{"MatMul", 6000}, {"Gelu", 2000}, {"Dust", 10}});
  const Breakdown b = rows_of({{"MatMul", 6000}, {"Erf", 2500}});
  const Comparison both = compare_profiles(a, b);
  CHECK_FALSE(both.is_changed(both.rows[0]));
  CHECK(both.is_changed(both.rows[1]));
  CHECK_FALSE(both.is_changed(both.rows[2]));  // less than a hundredth of the step
  CHECK(both.is_changed(both.rows[3]));
}

}  // namespace
}  // namespace trainscope::profiler
