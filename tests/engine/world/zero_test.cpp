// Data parallelism and ZeRO: bytes by the formulas of the paper, arenas by the planner.
#include "engine/world/zero.h"

#include <doctest/doctest.h>

#include <vector>

#include "engine/world/collective_ops.h"
#include "engine/world/place.h"
#include "tests/engine/world/world_steps.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kMlpParameters = 16 * 64 + 64 + 64 * 32 + 32 + 32 * 8 + 8;

Graph sharded(const Compiled& step, int stage, std::int64_t devices) {
  Graph graph = step.program.graph;
  apply_zero(graph, op_table(), stage, devices);
  return graph;
}

}  // namespace

TEST_CASE("world: one device is the local plan, to the byte") {
  for (const auto& step : {mlp_step(), gpt_step(), mlp_step({.micro_batches = 4})}) {
    const WorldPlan plan = planned(*step, {});
    CHECK(plan.device().peak_bytes == step->program.arena().bytes);
    CHECK(plan.sent_bytes == 0.0);
    CHECK(plan.exposed_seconds == 0.0);
  }
}

TEST_CASE("world: plain data parallelism changes no bytes") {
  const auto step = gpt_step();
  for (std::int64_t world : {2, 8, 1024}) {
    CHECK(planned(*step, {.world = world}).device().peak_bytes == step->program.arena().bytes);
  }
}

// Rajbhandari et al. 2020, figure 1, with f32 throughout: 4 bytes of a parameter, 4 of its gradient
// and 8 of Adam's state.
TEST_CASE("zero: states, gradients and parameters fall as the paper says") {
  const std::int64_t whole = 4 * kMlpParameters;
  const auto step = mlp_step();
  for (std::int64_t d : {2, 4, 8}) {  // every tensor is a multiple of 8
    CAPTURE(d);
    const DeviceShard one = planned(*step, {.world = d, .zero = 1}).device();
    CHECK(one.parameter_bytes == whole);
    CHECK(one.gradient_bytes == whole);
    CHECK(one.state_bytes == 2 * whole / d);
    const DeviceShard two = planned(*step, {.world = d, .zero = 2}).device();
    CHECK(two.parameter_bytes == whole);
    CHECK(two.gradient_bytes == whole / d);
    CHECK(two.state_bytes == 2 * whole / d);
    const DeviceShard three = planned(*step, {.world = d, .zero = 3}).device();
    CHECK(three.parameter_bytes == whole / d);
    CHECK(three.gradient_bytes == whole / d);
    CHECK(three.state_bytes == 2 * whole / d);
  }
}

TEST_CASE("zero: shards that do not divide are padded, tensor by tensor") {
  const auto step = compiled_step("mlp", {{"dims", Ints{3, 5}}});
  const DeviceShard shard = planned(*step, {.world = 4, .zero = 3}).device();
  CHECK(shard.parameter_bytes == 4 * (4 + 2));  // 15 weights, 5 biases
  CHECK(shard.state_bytes == 2 * 4 * (4 + 2));
}

TEST_CASE("zero: the arena of a step computed by hand") {
  // One layer 16 -> 8, batch 2, one block of 64 bytes more where a size is no multiple of 64.
  const auto step = compiled_step("mlp", {{"dims", Ints{16, 8}}, {"bias", false}},
                                  {.optimizer = OptimizerKind::kSgd});
  const std::int64_t weight = 16 * 8 * 4;
  const DeviceShard plain = planned(*step, {}).device();
  const DeviceShard third = planned(*step, {.world = 8, .zero = 3}).device();
  CHECK(plain.parameter_bytes == weight);
  CHECK(third.parameter_bytes == weight / 8);
  // While the gradient is scattered: the shard of the weight, the gradient, its shard. The first
  // matmul reads the gathered weight, its input and makes the logits, which is no more than that.
  const Program program =
      place_graph(sharded(*step, 3, 8), {}, {});  // without the kernels' workspaces
  std::int64_t scattering = 0;
  const memplan::Problem problem = placement_problem(program);
  for (const CallId id : calls_by_time(program)) {
    const Call& call = program.call(id);
    if (program.graph.node(call.node).op != &reduce_scatter_op()) continue;
    for (const memplan::Buffer& buffer : problem.buffers) {
      if (buffer.lower <= call.time && call.time < buffer.upper) {
        scattering += memplan::occupied_bytes(problem, buffer);
      }
    }
  }
  // Gradient 512, both shards 64, loss 64, and scalars of 64 each.
  std::int64_t scalars = 0;
  for (ValueId v : program.graph.live_values()) {
    const Value& value = program.graph.value(v);
    const bool constant = value.kind == ValueKind::kConstant;
    if (constant || value.name.starts_with("ai.trainscope.")) scalars += 64;
  }
  CHECK(scattering == 512 + 64 + 64 + 64 + scalars);
}

TEST_CASE("zero: every stage is a graph that keeps its invariants") {
  for (const auto& step : {mlp_step(), gpt_step(), gpt_step(1, {.micro_batches = 2}),
                           gpt_step(1, {.optimizer = OptimizerKind::kLamb}),
                           mlp_step({.optimizer = OptimizerKind::kSgd})}) {
    for (int stage : {1, 2, 3}) {
      for (std::int64_t devices : {2, 3, 16}) {
        CAPTURE(stage);
        CAPTURE(devices);
        CHECK(verify(sharded(*step, stage, devices)) == std::vector<std::string>{});
      }
    }
  }
}

TEST_CASE("zero: each stage and each doubling of the world takes no more memory") {
  // No tensor is so large that a whole copy of it outweighs what sharding saves.
  const auto even = compiled_step("mlp", {{"dims", Ints{32, 32, 32, 32, 32}}});
  const auto gpt = gpt_step(3);
  for (const Compiled* step : {even.get(), gpt.get()}) {
    for (int stage : {1, 2, 3}) {
      std::int64_t before = step->program.arena().bytes;
      for (std::int64_t world = 2; world <= 1024; world *= 2) {
        CAPTURE(stage);
        CAPTURE(world);
        const std::int64_t peak =
            planned(*step, {.world = world, .zero = stage}).device().peak_bytes;
        CHECK(peak <= before);
        before = peak;
        if (stage == 1) continue;
        CHECK(peak <= planned(*step, {.world = world, .zero = stage - 1}).device().peak_bytes);
      }
    }
  }
}

// Section 7 of the paper: stages 1 and 2 send what plain data parallelism does, stage 3 half as
// much again.
TEST_CASE("zero: the bytes that each device sends") {
  const auto step = mlp_step();
  const double whole = 4.0 * kMlpParameters;
  const std::int64_t d = 8;
  const auto sent = [&](int stage) {
    return planned(*step, {.world = d, .zero = stage}).sent_bytes;
  };
  const double ring = 7.0 / 8.0 * whole;
  CHECK(sent(0) == doctest::Approx(2 * ring));
  CHECK(sent(1) == doctest::Approx(2 * ring));
  CHECK(sent(2) == doctest::Approx(2 * ring));
  // Backward reads neither biases nor the first layer's weight.
  const double read_in_backward = 4.0 * (64 * 32 + 32 * 8);
  CHECK(sent(3) == doctest::Approx(2 * ring + 7.0 / 8.0 * read_in_backward));
}

TEST_CASE("zero: micro-batches are summed over devices once, or each when only shards are kept") {
  const auto step = mlp_step({.micro_batches = 4});
  WorldOptions options = world_of({.world = 8});
  options.micro_batches = 4;
  const double ring = 7.0 / 8.0 * 4.0 * kMlpParameters;
  CHECK(plan_kept(*step, options).sent_bytes == doctest::Approx(2 * ring));
  options.machine.layout.zero = 2;
  CHECK(plan_kept(*step, options).sent_bytes == doctest::Approx(5 * ring));
  CHECK(planned(*step, {.world = 8, .zero = 2}).device().gradient_bytes == kMlpParameters * 4 / 8);
}

TEST_CASE("world: a budget is kept by recomputation, or refused with the least one") {
  const auto step = gpt_step(1, {.batch = 8, .sequence = 16});
  WorldOptions options = world_of({.world = 4, .zero = 1});
  const DeviceShard plain = plan_kept(*step, options).device();
  options.budget_bytes = plain.peak_bytes * 8 / 10;
  const DeviceShard planned = plan_kept(*step, options).device();
  CHECK(planned.peak_bytes <= *options.budget_bytes);
  CHECK(planned.plain_bytes == plain.peak_bytes);
  CHECK(planned.rematerialized_nodes > 0);
  CHECK(planned.time.kernel_seconds > plain.time.kernel_seconds);
  options.budget_bytes = plain.state_bytes;
  const std::optional<Error> error = error_of([&] { plan_kept(*step, options); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kOutOfMemory);
  CHECK(contains(error->hint(), "least budget"));
}

}  // namespace trainscope::test
