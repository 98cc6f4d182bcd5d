// Learning rates against numbers worked out by hand.
#include "engine/train/schedule.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

// Relative, in units of a few roundings.
doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-14); }

}  // namespace

TEST_CASE("schedule: constant") {
  const Schedule schedule{.learning_rate = 0.25};
  CHECK(learning_rate_at(schedule, 1) == 0.25);
  CHECK(learning_rate_at(schedule, 1'000'000) == 0.25);
}

TEST_CASE("schedule: linear warm-up reaches the rate at its last step") {
  const Schedule schedule{.learning_rate = 3e-3, .warmup_steps = 20};
  CHECK(learning_rate_at(schedule, 1) == near(1.5e-4));
  CHECK(learning_rate_at(schedule, 10) == near(1.5e-3));
  CHECK(learning_rate_at(schedule, 19) == near(2.85e-3));
  CHECK(learning_rate_at(schedule, 20) == 3e-3);
  CHECK(learning_rate_at(schedule, 21) == 3e-3);
}

TEST_CASE("schedule: cosine from the end of the warm-up to the minimum") {
  const Schedule schedule{.kind = ScheduleKind::kCosine,
                          .learning_rate = 1e-3,
                          .min_learning_rate = 1e-4,
                          .warmup_steps = 100,
                          .total_steps = 2000};
  CHECK(learning_rate_at(schedule, 1) == near(1e-5));
  CHECK(learning_rate_at(schedule, 50) == near(5e-4));
  CHECK(learning_rate_at(schedule, 100) == 1e-3);
  // Half way: cos(pi/2) = 0.
  CHECK(learning_rate_at(schedule, 1050) == near(5.5e-4));
  // A third of the way: cos(pi/3) = 1/2; two thirds: -1/2.
  const Schedule thirds{.kind = ScheduleKind::kCosine,
                        .learning_rate = 1.0,
                        .min_learning_rate = 0.0,
                        .warmup_steps = 0,
                        .total_steps = 3};
  CHECK(learning_rate_at(thirds, 1) == near(0.75));
  CHECK(learning_rate_at(thirds, 2) == near(0.25));
  CHECK(learning_rate_at(thirds, 3) == 0.0);
  CHECK(learning_rate_at(schedule, 2000) == 1e-4);
  CHECK(learning_rate_at(schedule, 2001) == 1e-4);
}

TEST_CASE("schedule: cosine falls at every step after the warm-up") {
  const Schedule schedule{.kind = ScheduleKind::kCosine,
                          .learning_rate = 1e-3,
                          .min_learning_rate = 1e-4,
                          .warmup_steps = 10,
                          .total_steps = 300};
  for (std::int64_t step = 11; step <= 300; ++step) {
    CHECK(learning_rate_at(schedule, step) < learning_rate_at(schedule, step - 1));
  }
}

TEST_CASE("schedule: a warm-up as long as the run") {
  const Schedule schedule{.kind = ScheduleKind::kCosine,
                          .learning_rate = 2.0,
                          .min_learning_rate = 1.0,
                          .warmup_steps = 4,
                          .total_steps = 4};
  check_schedule(schedule);
  CHECK(learning_rate_at(schedule, 2) == 1.0);
  CHECK(learning_rate_at(schedule, 4) == 2.0);
  CHECK(learning_rate_at(schedule, 5) == 1.0);
}

TEST_CASE("schedule: linear falls by equal steps to the minimum") {
  const Schedule schedule{.kind = ScheduleKind::kLinear,
                          .learning_rate = 1.0,
                          .min_learning_rate = 0.2,
                          .warmup_steps = 2,
                          .total_steps = 10};
  CHECK(learning_rate_at(schedule, 1) == 0.5);
  CHECK(learning_rate_at(schedule, 2) == 1.0);
  CHECK(learning_rate_at(schedule, 3) == near(0.9));
  CHECK(learning_rate_at(schedule, 6) == near(0.6));
  CHECK(learning_rate_at(schedule, 10) == 0.2);
  CHECK(learning_rate_at(schedule, 11) == 0.2);
}

TEST_CASE("schedule: polynomial falls along a power, of 1 as linear does") {
  Schedule schedule{.kind = ScheduleKind::kPolynomial,
                    .learning_rate = 2.0,
                    .min_learning_rate = 1.0,
                    .warmup_steps = 0,
                    .total_steps = 4,
                    .power = 2.0};
  // (3/4)^2, (1/2)^2, (1/4)^2 above the minimum.
  CHECK(learning_rate_at(schedule, 1) == near(1.5625));
  CHECK(learning_rate_at(schedule, 2) == near(1.25));
  CHECK(learning_rate_at(schedule, 3) == near(1.0625));
  CHECK(learning_rate_at(schedule, 4) == 1.0);
  schedule.power = 1.0;
  Schedule linear = schedule;
  linear.kind = ScheduleKind::kLinear;
  for (std::int64_t step = 1; step <= 5; ++step) {
    CHECK(learning_rate_at(schedule, step) == learning_rate_at(linear, step));
  }
}

TEST_CASE("schedule: step falls by gamma after every step_size steps") {
  const Schedule schedule{.kind = ScheduleKind::kStep,
                          .learning_rate = 8.0,
                          .warmup_steps = 2,
                          .step_size = 3,
                          .gamma = 0.5};
  const double expected[] = {4, 8, 8, 8, 8, 4, 4, 4, 2, 2, 2, 1};
  for (std::int64_t step = 1; step <= 12; ++step) {
    CHECK(learning_rate_at(schedule, step) == expected[step - 1]);
  }
}

TEST_CASE("schedule: one_cycle rises and falls along half cosines") {
  // 10 steps, a peak at s = 0.3 * 10 - 1 = 2; from 1/10 up to 1 and down to 1/10 / 100.
  const Schedule schedule{.kind = ScheduleKind::kOneCycle,
                          .learning_rate = 1.0,
                          .total_steps = 10,
                          .rising_share = 0.3,
                          .div_factor = 10.0,
                          .final_div_factor = 100.0};
  CHECK(learning_rate_at(schedule, 1) == near(0.1));
  CHECK(learning_rate_at(schedule, 2) == near(0.55));  // half way
  CHECK(learning_rate_at(schedule, 3) == near(1.0));
  // 1/7 of the way down: 0.001 + 0.999 * (1 + cos(pi / 7)) / 2.
  CHECK(learning_rate_at(schedule, 4) == near(0.9505339495172583));
  CHECK(learning_rate_at(schedule, 10) == near(0.001));
  CHECK(learning_rate_at(schedule, 11) == near(0.001));
  Schedule falls = schedule;
  falls.rising_share = 0.0;
  CHECK(learning_rate_at(falls, 1) < 1.0);
  CHECK(learning_rate_at(falls, 10) == near(0.001));
  Schedule rises = schedule;
  rises.rising_share = 1.0;
  CHECK(learning_rate_at(rises, 10) == near(1.0));
}

TEST_CASE("schedule: names") {
  for (ScheduleKind kind : kScheduleKinds) CHECK(parse_schedule_kind(name_of(kind)) == kind);
  const Error error = error_of([] { parse_schedule_kind("cosin"); });
  CHECK(error.code() == ErrorCode::kUsage);
  CHECK(error.message() ==
        "unknown schedule 'cosin': expected one of constant, linear, cosine, "
        "polynomial, step, one_cycle");
  CHECK(error.hint() == "did you mean 'cosine'?");
}

TEST_CASE("schedule: numbers out of range are refused") {
  const auto code_of = [](const Schedule& schedule) {
    return error_of([&] { check_schedule(schedule); }).code();
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(code_of({.learning_rate = -1.0}) == ErrorCode::kUsage);
  CHECK(code_of({.learning_rate = infinity}) == ErrorCode::kUsage);
  CHECK(code_of({.learning_rate = nan}) == ErrorCode::kUsage);
  CHECK(code_of({.warmup_steps = -1}) == ErrorCode::kUsage);
  const Schedule cosine{.kind = ScheduleKind::kCosine, .learning_rate = 1e-3, .total_steps = 10};
  Schedule wrong = cosine;
  wrong.min_learning_rate = 2e-3;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong = cosine;
  wrong.warmup_steps = 11;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong = cosine;
  wrong.total_steps = 0;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong = cosine;
  wrong.kind = ScheduleKind::kPolynomial;
  wrong.power = 0.0;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong = cosine;
  wrong.kind = ScheduleKind::kStep;
  CHECK(code_of(wrong) == ErrorCode::kUsage);  // no step size
  wrong.step_size = 1;
  wrong.gamma = -0.5;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong = cosine;
  wrong.kind = ScheduleKind::kOneCycle;
  wrong.rising_share = 1.5;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong.rising_share = 0.5;
  wrong.div_factor = 0.0;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong.div_factor = 1.0;
  wrong.final_div_factor = infinity;
  CHECK(code_of(wrong) == ErrorCode::kUsage);
  wrong.final_div_factor = 1.0;
  CHECK_NOTHROW(check_schedule(wrong));
  CHECK_NOTHROW(check_schedule(cosine));
  CHECK_NOTHROW(check_schedule({.learning_rate = 0.0}));
}

TEST_CASE("schedule: as JSON") {
  CHECK(schedule_json({.learning_rate = 0.5, .warmup_steps = 3}).dump() ==
        R"({"kind":"constant","learning_rate":0.5,"warmup_steps":3})");
  CHECK(schedule_json({.kind = ScheduleKind::kCosine,
                       .learning_rate = 0.5,
                       .min_learning_rate = 0.125,
                       .warmup_steps = 3,
                       .total_steps = 9})
            .dump() == R"({"kind":"cosine","learning_rate":0.5,"warmup_steps":3,)"
                       R"("min_learning_rate":0.125,"total_steps":9})");
  CHECK(schedule_json({.kind = ScheduleKind::kStep, .learning_rate = 0.5, .step_size = 4}).dump() ==
        R"({"kind":"step","learning_rate":0.5,"warmup_steps":0,"step_size":4,"gamma":0.1})");
  CHECK(schedule_json({.kind = ScheduleKind::kPolynomial, .learning_rate = 0.5, .power = 2.0})
            .get<double>("power") == 2.0);
  CHECK(schedule_json({.kind = ScheduleKind::kOneCycle, .learning_rate = 0.5, .total_steps = 9})
            .dump() == R"({"kind":"one_cycle","learning_rate":0.5,"total_steps":9,)"
                       R"("rising_share":0.3,"div_factor":25.0,"final_div_factor":10000.0})");
}

}  // namespace trainscope
