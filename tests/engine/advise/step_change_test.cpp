// Changes of a step: each field is what the compiler is told, and what is left out stays.
#include "engine/advise/step_change.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

TrainRequest points() { return points_request({}, 0); }

TEST_CASE("step change: nothing changed is the same step") {
  const TrainRequest step = points();
  const TrainRequest same = changed(step, {}, {});
  CHECK(same.batch == step.batch);
  CHECK(same.compile.import.dims == step.compile.import.dims);
  CHECK(same.compile.lower.threads == step.compile.lower.threads);
  CHECK((same.compile.recompute.mode == RecomputeMode::kNone));
  CHECK(same.compile.training.micro_batches == step.compile.training.micro_batches);
}

TEST_CASE("step change: fields are options of the compiler") {
  const TrainRequest step = changed(points(), {},
                                    {.micro_batches = 3,
                                     .loss_chunks = 5,
                                     .precision = StepPrecision::kBF16,
                                     .threads = 2,
                                     .optimizer_in_backward = true,
                                     .skip_ignored = true});
  CHECK(step.compile.training.micro_batches == 3);
  CHECK(step.compile.training.loss_chunks == 5);
  CHECK((step.compile.training.precision == StepPrecision::kBF16));
  CHECK(step.compile.lower.threads == 2);
  CHECK(step.compile.training.optimizer.in_backward);
  CHECK(step.compile.training.skip_ignored);
}

TEST_CASE("step change: limits of memory and time are planned for, offload by the machine's link") {
  TrainRequest step = points();
  step.compile.recompute.keep = {"y"};
  const RecomputeOptions within = changed(step, {}, {.budget_bytes = 1000}).compile.recompute;
  CHECK((within.mode == RecomputeMode::kAuto));
  CHECK(within.budget_bytes == 1000);
  CHECK(!within.link);
  CHECK(within.keep == step.compile.recompute.keep);
  const RecomputeOptions most = changed(step, {}, {.max_overhead = 0.1}).compile.recompute;
  CHECK((most.mode == RecomputeMode::kAuto));
  CHECK(most.max_overhead == 0.1);
  CHECK(!most.budget_bytes);
  const RecomputeOptions away =
      changed(step, {}, {.budget_bytes = 1000, .offload = true}).compile.recompute;
  REQUIRE(away.link.has_value());
  CHECK(away.link->bytes_per_second == step.compile.machine.host_link.bytes_per_second);
}

TEST_CASE("step change: another batch keeps to the sizes that were asked for") {
  TrainRequest step = points();
  step.model = model("(float[n,t] x, float[n,t] labels) => (float[n,t] y) { y = Neg(x) }");
  const SizeRequest asked{.batch = 4, .shapes = {{"t", {7}}}};
  const Sizes sizes = resolve_sizes(step.model, asked);
  step.compile.import.dims = sizes.dims;
  const TrainRequest twice = changed(step, asked, {.batch = 8});
  CHECK(twice.batch == 8);
  CHECK(twice.compile.import.dims.at("n") == 8);
  CHECK(twice.compile.import.dims.at("t") == 7);
}

TEST_CASE("step change: a batch that the model fixes is refused") {
  TrainRequest step = points();
  step.model = model("(float[4,3] x) => (float[4,3] y) { y = Neg(x) }");
  try {
    (void)changed(step, {}, {.batch = 8});
    FAIL("a batch of 8 was taken");
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::kUsage));
    CHECK(error.message() == "--batch 8 does not fit the model: input 'x' has 4 there");
  }
}

}  // namespace
}  // namespace trainscope::test
