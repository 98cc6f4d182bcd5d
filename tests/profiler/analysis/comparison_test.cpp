// Two profiles: what is significant, rows that one of them lacks, and runs that are made up: of the
// same program, and of one with an op that takes a tenth longer.
#include "profiler/analysis/comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
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
  CHECK(both.rows[1].significance() < -kSignificant);  // there is nothing of it in b
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
  const Breakdown a =
      rows_of({{"MatMul", 600000}, {"Gelu", 200000}, {"Add", 150000}, {"Loss", 50000}});
  const Breakdown slower =
      rows_of({{"MatMul", 720000}, {"Gelu", 240000}, {"Add", 180000}, {"Loss", 60000}});
  const Comparison common = compare_profiles(a, slower);
  CHECK(common.common_ratio == doctest::Approx(1.2));
  for (const ComparedRow& row : common.rows) CHECK_FALSE(common.is_changed(row));
  const Breakdown one =
      rows_of({{"MatMul", 720000}, {"Gelu", 240000}, {"Add", 180000}, {"Loss", 66000}});
  const Comparison changed = compare_profiles(a, one);
  CHECK(changed.is_changed(changed.rows[3]));
  CHECK(changed.change(changed.rows[3]) == doctest::Approx(0.1).epsilon(0.01));
  for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(changed.is_changed(changed.rows[i]));
}

TEST_CASE("comparison: a row of less than ten microseconds is not said to have changed") {
  const Breakdown a = rows_of({{"MatMul", 450e3}, {"Gelu", 120e3}, {"Add", 10.5e3}, {"Loss", 8e3}});
  const Breakdown b =
      rows_of({{"MatMul", 450e3}, {"Gelu", 120e3}, {"Add", 11.6e3}, {"Loss", 9.9e3}});
  const Comparison both = compare_profiles(a, b);
  CHECK(both.is_changed(both.rows[2]));
  CHECK_FALSE(both.is_changed(both.rows[3]));
}

TEST_CASE("comparison: a row that is in one alone has changed, where it is large") {
  const Breakdown a = rows_of({{"MatMul", 600000}, {"Gelu", 200000}, {"Dust", 1000}});
  const Breakdown b = rows_of({{"MatMul", 600000}, {"Erf", 250000}});
  const Comparison both = compare_profiles(a, b);
  CHECK_FALSE(both.is_changed(both.rows[0]));
  CHECK(both.is_changed(both.rows[1]));
  CHECK_FALSE(both.is_changed(both.rows[2]));  // less than a hundredth of the step
  CHECK(both.is_changed(both.rows[3]));
}

// A row of a program: what its calls take in a step when nothing disturbs them.
struct ProgramRow {
  const char* name;
  double ns;
};
const std::vector<ProgramRow> kProgram = {{"/0/Gemm", 450e3}, {"/2/Gemm", 420e3}, {"SgdStep", 80e3},
                                          {"logits", 40e3},   {"/1/Relu", 34e3},  {"(loss)", 6e3}};

// What a run has of its own, as it was measured of real ones: of each row a percent, and steps that
// others take the processor from.
struct MadeRun {
  std::size_t steps = 40;
  double between = 0.008;  // standard deviation of a row's own factor
  double disturbed = 0.3;  // of the steps of each row
  double common = 1.0;     // a factor of all rows
  const char* slow = "";   // the row that takes `longer`
  double longer = 1.1;
  std::vector<double> rows = {};  // a factor of each row, where there are some
};

Breakdown made_run(std::mt19937_64& random, const MadeRun& run) {
  std::normal_distribution<double> normal(0.0, 1.0);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  Breakdown table{.steps = static_cast<std::int64_t>(run.steps),
                  .step_ns = std::vector<double>(run.steps, 0.0)};
  for (std::size_t r = 0; r < kProgram.size(); ++r) {
    BreakdownRow row{.name = kProgram[r].name};
    double ns = kProgram[r].ns * run.common * std::exp(run.between * normal(random));
    if (row.name == run.slow) ns *= run.longer;
    if (!run.rows.empty()) ns *= run.rows[r];
    for (std::size_t i = 0; i < run.steps; ++i) {
      double step = ns * (1.0 + 0.01 * std::abs(normal(random)));
      if (uniform(random) < run.disturbed) step += 2e6 * uniform(random);
      row.step_ns.push_back(step);
      table.step_ns[i] += step;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> changed_in(const Comparison& both) {
  std::vector<std::string> names;
  for (const ComparedRow& row : both.rows) {
    if (both.is_changed(row)) names.push_back(row.name);
  }
  return names;
}

// Of `pairs`: in how many exactly `names` are named.
int pairs_that_name(const std::vector<std::string>& names, const MadeRun& a, const MadeRun& b,
                    int pairs) {
  std::mt19937_64 random(20);
  int count = 0;
  for (int i = 0; i < pairs; ++i) {
    const Breakdown first = made_run(random, a);
    const Breakdown second = made_run(random, b);
    count += changed_in(compare_profiles(first, second)) == names ? 1 : 0;
  }
  return count;
}

TEST_CASE("comparison: pairs of runs of one program name nothing") {
  CHECK(pairs_that_name({}, {}, {}, 400) >= 396);
  CHECK(pairs_that_name({}, {.steps = 24}, {.steps = 24}, 400) >= 396);
  CHECK(pairs_that_name({}, {.disturbed = 0.6}, {.disturbed = 0.0}, 400) >= 392);
}

TEST_CASE("comparison: a tenth more of one row is found, whatever all rows have in common") {
  for (const char* row : {"/0/Gemm", "/2/Gemm", "SgdStep", "logits", "/1/Relu"}) {
    CAPTURE(std::string(row));
    CHECK(pairs_that_name({row}, {}, {.slow = row}, 100) >= 97);
    CHECK(pairs_that_name({row}, {}, {.common = 1.2, .slow = row}, 100) >= 97);
    CHECK(pairs_that_name({row}, {.slow = row}, {}, 100) >= 97);
  }
}

TEST_CASE(
    "comparison: a machine that changed for all rows, for each by another factor, names none") {
  // Seen where a hypervisor moved a processor: what lies in caches took 2.6 times as long.
  const std::vector<double> moved = {1.08, 1.18, 2.6, 2.0, 2.6, 1.0};
  CHECK(pairs_that_name({}, {}, {.rows = moved}, 100) == 100);
}

TEST_CASE("comparison: steps that become slower in both runs alike are compared with each other") {
  // As an optimizer's update does whose numbers become denormal: half as long again at the end.
  const auto growing = [](double factor) {
    Breakdown table = rows_of({{"Gemm", 400e3}, {"Relu", 60e3}, {"Update", 40e3}});
    table.step_ns.assign(80, 0.0);
    for (BreakdownRow& row : table.rows) {
      const double ns = row.step_ns[0];
      row.step_ns.clear();
      for (int i = 0; i < 80; ++i) {
        const double more = row.name == "Update" ? factor * (1.0 + 0.5 * i / 80.0) : 1.0;
        row.step_ns.push_back(ns * more);
        table.step_ns[static_cast<std::size_t>(i)] += ns * more;
      }
    }
    return table;
  };
  const Comparison same = compare_profiles(growing(1.0), growing(1.01));
  CHECK(changed_in(same).empty());
  const Comparison slower = compare_profiles(growing(1.0), growing(1.1));
  CHECK(changed_in(slower) == std::vector<std::string>{"Update"});
  CHECK(slower.rows[2].ratio() == doctest::Approx(1.1));
  CHECK(slower.rows[2].a.drift > 0.1);
}

TEST_CASE("comparison: on machines that were not alike no row changed, and no step is slower") {
  Breakdown a = rows_of({{"MatMul", 500e3}, {"Add", 80e3}, {"Mul", 20e3}, {"Gelu", 200e3}});
  Breakdown b = rows_of({{"MatMul", 500e3}, {"Add", 80e3}, {"Mul", 20e3}, {"Gelu", 300e3}});
  const Comparison unknown = compare_profiles(a, b);
  CHECK(changed_in(unknown) == std::vector<std::string>{"Gelu"});
  CHECK(unknown.is_slower(0.05));
  a.machines = {{.clock = 700, .exchange = 120, .usual_exchange = 120}};
  b.machines = {{.clock = 700, .exchange = 60, .usual_exchange = 60}};
  const Comparison moved = compare_profiles(a, b);
  CHECK(changed_in(moved).empty());
  b.rows.push_back({.name = "Tanh", .step_ns = std::vector<double>(5, 100e3)});
  CHECK(changed_in(compare_profiles(a, b)).empty());
  b.rows.pop_back();
  CHECK_FALSE(moved.is_slower(0.05));  // twice as long would be explained
  b.machines = a.machines;
  const Comparison alike = compare_profiles(a, b);
  CHECK(changed_in(alike) == std::vector<std::string>{"Gelu"});
  CHECK(alike.is_slower(0.05));
  CHECK_FALSE(alike.is_slower(0.2));
}

TEST_CASE("comparison: where the machine was measured its clock says what rows have in common") {
  Breakdown a = rows_of({{"Gemm", 400e3}, {"BatchMatMul", 500e3}});
  Breakdown b = rows_of({{"Gemm", 400e3 * 1.04}, {"BatchMatMul", 500e3 * 1.04 * 1.1}});
  a.machines = {{.clock = 700, .exchange = 120, .usual_exchange = 120}};
  b.machines = {{.clock = 700 / 1.04, .exchange = 120, .usual_exchange = 120}};
  const Comparison both = compare_profiles(a, b);
  CHECK(both.common_ratio == doctest::Approx(1.04));
  CHECK(changed_in(both) == std::vector<std::string>{"BatchMatMul"});
}

// Adds a run's steps behind those of others.
void append(Breakdown& all, const Breakdown& run) {
  if (all.rows.empty()) all.rows.assign(run.rows.size(), {});
  all.steps += run.steps;
  all.run_steps.push_back(run.step_ns.size());
  all.step_ns.insert(all.step_ns.end(), run.step_ns.begin(), run.step_ns.end());
  all.machines.insert(all.machines.end(), run.machines.begin(), run.machines.end());
  for (std::size_t r = 0; r < all.rows.size(); ++r) {
    all.rows[r].name = run.rows[r].name;
    std::vector<double>& steps = all.rows[r].step_ns;
    steps.insert(steps.end(), run.rows[r].step_ns.begin(), run.rows[r].step_ns.end());
  }
}

// Several runs one behind the other.
Breakdown made_runs(std::mt19937_64& random, const MadeRun& run, int count) {
  Breakdown all;
  for (int i = 0; i < count; ++i) append(all, made_run(random, run));
  return all;
}

TEST_CASE("comparison: several runs a side tell how far runs are apart") {
  // Runs that are 4 % apart row by row: two of them name rows, five a side know that.
  const MadeRun apart{.between = 0.04};
  const MadeRun slow{.between = 0.008, .slow = "/2/Gemm", .longer = 1.06};
  std::mt19937_64 random(7);
  int single = 0;
  int several = 0;
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const Breakdown one = made_run(random, apart);
    single += changed_in(compare_profiles(one, made_run(random, apart))).empty() ? 0 : 1;
    const Breakdown a = made_runs(random, apart, 5);
    several += changed_in(compare_profiles(a, made_runs(random, apart, 5))).empty() ? 0 : 1;
    const Breakdown b = made_runs(random, {}, 5);
    found += changed_in(compare_profiles(b, made_runs(random, slow, 5))) ==
                     std::vector<std::string>{"/2/Gemm"}
                 ? 1
                 : 0;
  }
  CHECK(single >= 10);
  CHECK(several <= 5);
  CHECK(found >= 95);
}

// Sides of runs that were made in turn on a machine that becomes slower all the while, for each row
// by a factor of its own; between the two runs of every fourth pair it moved, by turns to B's cost
// and to A's.
std::pair<Breakdown, Breakdown> made_in_turn(std::mt19937_64& random, const MadeRun& run_a,
                                             const MadeRun& run_b, int count) {
  const std::vector<double> moved = {1.08, 1.18, 1.6, 1.4, 1.6, 1.0};
  std::pair<Breakdown, Breakdown> sides;
  for (int i = 0; i < count; ++i) {
    const double slower = 1.0 + 0.05 * i;
    MadeRun a = run_a;
    MadeRun b = run_b;
    a.rows = b.rows = {slower, slower, slower * slower, slower, 1.0, 1.0};
    if (i % 8 == 3) b.rows = moved;
    if (i % 8 == 7) a.rows = moved;
    Breakdown first = made_run(random, a);
    Breakdown second = made_run(random, b);
    first.machines = {{.clock = 700, .exchange = 120, .usual_exchange = 120}};
    second.machines = first.machines;
    if (i % 8 == 3) second.machines[0].exchange = 60;
    if (i % 8 == 7) first.machines[0].exchange = 60;
    append(sides.first, first);
    append(sides.second, second);
  }
  return sides;
}

TEST_CASE("comparison: runs that were made in turn are compared pair by pair") {
  const MadeRun apart{.between = 0.02};
  const MadeRun slow{.between = 0.02, .slow = "SgdStep", .longer = 1.1};
  std::mt19937_64 random(11);
  for (const int count : {12, 16}) {
    CAPTURE(count);
    int alarms = 0;
    int found = 0;
    for (int i = 0; i < 100; ++i) {
      const auto [a, b] = made_in_turn(random, apart, apart, count);
      alarms += changed_in(compare_profiles(a, b)).empty() ? 0 : 1;
      const auto [c, d] = made_in_turn(random, apart, slow, count);
      found += changed_in(compare_profiles(c, d)) == std::vector<std::string>{"SgdStep"} ? 1 : 0;
    }
    CHECK(alarms <= 2);
    CHECK(found >= 97);
  }
}

// Six runs a side of six steps each, made in turn: the i-th steps of a pair see the same moment of
// a machine whose clock now and again is higher for one of them.
std::pair<Breakdown, Breakdown> made_of_moments(std::mt19937_64& random, double longer) {
  std::normal_distribution<double> normal(0.0, 1.0);
  std::bernoulli_distribution boosted(0.15);
  const auto own = [&] { return (1.0 + 0.02 * normal(random)) * (boosted(random) ? 0.85 : 1.0); };
  std::pair<Breakdown, Breakdown> sides;
  for (int run = 0; run < 6; ++run) {
    Breakdown a = made_run(random, {.steps = 6, .disturbed = 0.0});
    Breakdown b = made_run(random, {.steps = 6, .disturbed = 0.0});
    for (std::size_t i = 0; i < 6 * a.rows.size(); ++i) {
      const double moment = std::exp(0.1 * normal(random));
      a.rows[i / 6].step_ns[i % 6] *= moment * own();
      b.rows[i / 6].step_ns[i % 6] *= moment * own() * (i / 6 == 2 ? longer : 1.0);
    }
    append(sides.first, a);
    append(sides.second, b);
  }
  return sides;
}

TEST_CASE("comparison: in pairs of short runs each step is held against its neighbour") {
  std::mt19937_64 random(17);
  int alarms = 0;
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const auto [a, b] = made_of_moments(random, 1.0);
    alarms += changed_in(compare_profiles(a, b)).empty() ? 0 : 1;
    const auto [c, d] = made_of_moments(random, 1.1);
    found += changed_in(compare_profiles(c, d)) == std::vector<std::string>{"SgdStep"} ? 1 : 0;
  }
  CHECK(alarms <= 2);
  CHECK(found >= 97);
}

TEST_CASE("comparison: what most pairs measured of the machine decides whether it was alike") {
  std::mt19937_64 random(12);
  const MadeRun slow{.slow = "/2/Gemm"};
  auto [a, b] = made_in_turn(random, {}, slow, 8);
  const Comparison both = compare_profiles(a, b);
  CHECK(both.pairs == 8);
  CHECK(both.step.pairs.size() == 8);
  CHECK(both.machine.is_alike());
  CHECK(both.machine.is_measured);
  CHECK(changed_in(both) == std::vector<std::string>{"/2/Gemm"});
  CHECK(both.change(both.rows[1]) == doctest::Approx(0.1).epsilon(0.2));
  for (std::size_t i = 0; i < 5; ++i) b.machines[i].exchange = 60;
  const Comparison moved = compare_profiles(a, b);
  CHECK_FALSE(moved.machine.is_alike());
  CHECK(changed_in(moved).empty());
  // Of fewer runs a side, or of sides that are not in pairs, no pair is looked at.
  const auto [c, d] = made_in_turn(random, {}, slow, 5);
  CHECK(compare_profiles(c, d).pairs == 0);
  CHECK(compare_profiles(a, made_runs(random, {}, 5)).pairs == 0);
}

TEST_CASE("comparison: a row that some runs lack is not compared in pairs") {
  std::mt19937_64 random(13);
  auto [a, b] = made_in_turn(random, {}, {}, 6);
  std::fill_n(b.rows[4].step_ns.begin(), 40, 0.0);
  const Comparison both = compare_profiles(a, b);
  CHECK(both.rows[4].pairs.empty());
  CHECK(both.rows[3].pairs.size() == 6);
}

TEST_CASE("comparison: of few steps, a difference that they have anyway is none") {
  std::mt19937_64 random(3);
  const Breakdown a = made_run(random, {.steps = 5, .disturbed = 0.5});
  const Breakdown b = made_run(random, {.steps = 5, .disturbed = 0.5});
  CHECK(changed_in(compare_profiles(a, b)).empty());
}

}  // namespace
}  // namespace trainscope::profiler
