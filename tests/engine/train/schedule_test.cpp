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

TEST_CASE("schedule: names") {
  CHECK(parse_schedule_kind("constant") == ScheduleKind::kConstant);
  CHECK(parse_schedule_kind("cosine") == ScheduleKind::kCosine);
  const Error error = error_of([] { parse_schedule_kind("cosin"); });
  CHECK(error.code() == ErrorCode::kUsage);
  CHECK(error.message() == "unknown schedule 'cosin': expected one of constant, cosine");
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
}

}  // namespace trainscope
