// One forward, one backward: how long stages take together.
#include "engine/world/pipeline_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace trainscope::test {

TEST_CASE("pipeline schedule: micro-batches in flight") {
  CHECK(micro_batches_in_flight(0, 4, 8) == 4);
  CHECK(micro_batches_in_flight(3, 4, 8) == 1);
  CHECK(micro_batches_in_flight(1, 4, 2) == 2);
  CHECK(micro_batches_in_flight(0, 1, 8) == 1);
}

TEST_CASE("pipeline schedule: equal stages take the formula's time") {
  for (std::size_t count : {1, 2, 4, 7}) {
    const std::vector<StageSeconds> stages(count, {.forward = 1.0, .backward = 2.0});
    for (std::int64_t micro_batches : {1, 3, 8, 100}) {
      CAPTURE(count);
      CAPTURE(micro_batches);
      const auto others = static_cast<double>(count - 1);
      CHECK(pipeline_seconds(stages, micro_batches) ==
            doctest::Approx(3.0 * (static_cast<double>(micro_batches) + others)));
    }
  }
}

TEST_CASE("pipeline schedule: the slowest stage sets the pace, the others fill and drain") {
  // Forward 1, 1, 3; backward 2, 2, 6: the last stage begins after 2, the first ends 4 after it.
  const std::vector<StageSeconds> stages = {{1.0, 2.0}, {1.0, 2.0}, {3.0, 6.0}};
  CHECK(pipeline_seconds(stages, 5) == doctest::Approx(2.0 + 5 * 9.0 + 4.0));
  CHECK(pipeline_seconds(stages, 1000) == doctest::Approx(2.0 + 1000 * 9.0 + 4.0));
}

TEST_CASE("pipeline schedule: never quicker than the slowest stage, nor slower than one by one") {
  const std::vector<StageSeconds> stages = {{2.0, 3.0}, {4.0, 1.0}, {1.0, 1.0}, {0.5, 6.0}};
  double sum = 0.0;
  double slowest = 0.0;
  for (const StageSeconds& stage : stages) {
    sum += stage.forward + stage.backward;
    slowest = std::max(slowest, stage.forward + stage.backward);
  }
  double before = 0.0;
  for (std::int64_t m = 1; m <= 40; ++m) {
    CAPTURE(m);
    const double seconds = pipeline_seconds(stages, m);
    CHECK(seconds >= static_cast<double>(m - 1) * slowest + sum - 1e-9);
    CHECK(seconds <= static_cast<double>(m) * sum + 1e-9);
    CHECK(seconds > before);
    before = seconds;
  }
}

}  // namespace trainscope::test
