// Values that wait in host memory on devices that are not here: prices, bytes, pipelines.
#include <doctest/doctest.h>

#include "tests/engine/world/world_steps.h"

namespace trainscope::test {
namespace {

WorldOptions with_link(const Layout& layout, double bytes_per_second) {
  WorldOptions options = world_of(layout);
  options.machine.link = HostLink{.bytes_per_second = bytes_per_second, .seconds_per_transfer = 0};
  return options;
}

WorldPlan plan_within(const Compiled& step, WorldOptions options, std::int64_t budget_bytes) {
  options.budget_bytes = budget_bytes;
  return plan_kept(step, options);
}

}  // namespace

TEST_CASE("world offload: transfers take the link's time, on the kernels' stream") {
  const auto step = gpt_step(2, {.batch = 8});
  const std::int64_t plain = planned(*step, {}).device().peak_bytes;
  const std::int64_t budget = plain - plain / 8;
  const WorldPlan quick = plan_within(*step, with_link({}, 1e15), budget);
  CHECK(quick.device().peak_bytes <= budget);
  REQUIRE(quick.device().host_bytes > 0);
  const double without = planned(*step, {}).step_seconds;
  CHECK(quick.step_seconds == doctest::Approx(without).epsilon(0.01));
  CHECK(quick.step_seconds == doctest::Approx(quick.device().time.kernel_seconds));
  // So slow that recomputing is quicker.
  const WorldPlan slow = plan_within(*step, with_link({}, 1.0), budget);
  CHECK(slow.device().host_bytes == 0);
  CHECK(slow.rematerialized_nodes() > 0);
  CHECK(slow.step_seconds == plan_within(*step, world_of({}), budget).step_seconds);
  CHECK(quick.step_seconds < slow.step_seconds);
}

TEST_CASE("world offload: all micro-batches in flight of a pipeline wait in host memory") {
  const auto step = gpt_step(4, {.batch = 8, .micro_batches = 4});
  const Layout layout{.world = 2, .pipeline = 2};
  WorldOptions options = with_link(layout, 1e15);
  options.micro_batches = 4;
  WorldOptions unlimited = options;
  const WorldPlan plain = plan_kept(*step, unlimited);
  const std::int64_t budget = plain.device().peak_bytes - plain.device().peak_bytes / 8;
  const WorldPlan plan = plan_within(*step, options, budget);
  CHECK(plan.device().peak_bytes <= budget);
  const DeviceShard& first = plan.stages.front();  // with two micro-batches in flight
  REQUIRE(first.host_bytes > 0);
  CHECK(first.host_bytes % 2 == 0);
}

}  // namespace trainscope::test
