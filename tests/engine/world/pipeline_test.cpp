// Pipelines: where a step is cut, what each stage holds and does.
#include "engine/world/pipeline.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "engine/world/collective_ops.h"
#include "engine/world/place.h"
#include "tests/engine/world/world_steps.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::vector<PipelineStage> cut(const Compiled& step, std::int64_t stages) {
  const WorldOptions options = world_of({.world = stages, .pipeline = stages});
  return cut_stages(step.program.graph, op_table(), options.machine, workspaces_of(step.program));
}

std::set<std::string> parameters(const Graph& graph) {
  std::set<std::string> names;
  for (ValueId v : graph.values_of(ValueKind::kParameter)) names.insert(graph.value(v).name);
  return names;
}

std::vector<std::string> received(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op == &receive_op()) names.push_back(graph.value(node.outputs[0]).name);
  }
  return names;
}

WorldPlan planned(const Compiled& step, const Layout& layout, std::int64_t micro_batches) {
  WorldOptions options = world_of(layout);
  options.micro_batches = micro_batches;
  return plan_kept(step, options);
}

}  // namespace

TEST_CASE("pipeline: stages are graphs, and every parameter is on one") {
  const auto step = compiled_step("mlp", {{"dims", Ints{16, 32, 32, 32, 8}}});
  for (std::int64_t count : {2, 3, 4}) {
    CAPTURE(count);
    std::set<std::string> all;
    std::size_t sum = 0;
    for (const PipelineStage& stage : cut(*step, count)) {
      CHECK(verify(stage.graph) == std::vector<std::string>{});
      const std::set<std::string> own = parameters(stage.graph);
      all.insert(own.begin(), own.end());
      sum += own.size();
    }
    CHECK(all == parameters(step->program.graph));
    CHECK(sum == all.size());
  }
}

TEST_CASE("pipeline: one activation goes on, its gradient comes back") {
  const auto step = gpt_step(4);
  const std::vector<PipelineStage> stages = cut(*step, 2);
  REQUIRE(stages.size() == 2);
  for (const PipelineStage& stage : stages) {
    CHECK(verify(stage.graph) == std::vector<std::string>{});
  }
  // The tied table is on both, which sum their gradients of it.
  CHECK(parameters(stages[0].graph).contains("wte.weight"));
  CHECK(parameters(stages[1].graph).contains("wte.weight"));
  CHECK(received(stages[0].graph).size() == 1);
  CHECK(received(stages[1].graph).size() == 1);
  const Graph& last = stages[1].graph;
  CHECK(last.value(last.find(received(last).front())).type.shape == Shape{2, 8, 32});
  CHECK(last.loss != kNoValue);
  CHECK(stages[0].graph.loss == kNoValue);
}

TEST_CASE("pipeline: a tied table's gradient is exchanged once a step") {
  for (std::int64_t micro_batches : {1, 2, 8}) {
    CAPTURE(micro_batches);
    const auto step = gpt_step(4, {.micro_batches = micro_batches});
    const WorldPlan plan = planned(*step, {.world = 2, .pipeline = 2}, micro_batches);
    const std::int64_t table = 64 * 32 * 4;
    const std::int64_t activation = 2 * 8 * 32 * 4;
    // Of two devices each sends as much as it has; what it receives of the other stage is counted
    // with it.
    CHECK(plan.sent_bytes == table + micro_batches * activation);
    for (const PipelineStage& stage : cut(*step, 2)) {
      CHECK(verify(stage.graph) == std::vector<std::string>{});
      // Each adds its own up over the micro-batches.
      const ValueId sum = stage.graph.find("ai.trainscope.accumulated/wte.weight");
      CHECK((sum != kNoValue) == (micro_batches > 1));
    }
  }
}

TEST_CASE("pipeline: dropout, masks, clipping and micro-batches in every model") {
  const ModelArguments bert = {{"layers", std::int64_t{4}},        {"heads", std::int64_t{4}},
                               {"embedding", std::int64_t{32}},    {"vocab", std::int64_t{64}},
                               {"feed-forward", std::int64_t{64}}, {"context", std::int64_t{16}}};
  for (const char* name : {"bert", "llama"}) {
    CAPTURE(name);
    ModelArguments arguments = bert;
    if (name[0] == 'l') arguments.emplace("kv-heads", std::int64_t{2});
    const auto step =
        compiled_step(name, arguments, {.batch = 2, .sequence = 8, .micro_batches = 4});
    for (const PipelineStage& stage : cut(*step, 4)) {
      CHECK(verify(stage.graph) == std::vector<std::string>{});
      CHECK(received(stage.graph).size() <= 3);
    }
    const WorldPlan plan = planned(*step, {.world = 16, .tensor = 2, .pipeline = 4, .zero = 1}, 4);
    CHECK(plan.stages.size() == 4);
    CHECK(plan.device().peak_bytes < step->program.arena().bytes);
  }
}

TEST_CASE("pipeline: micro-batches in flight are those of one forward, one backward") {
  // Memory of the first stage grows up to as many micro-batches as there are stages.
  std::vector<std::int64_t> peaks;
  for (std::int64_t micro_batches : {1, 2, 4, 8}) {
    const auto step = gpt_step(4, {.micro_batches = 2});
    peaks.push_back(
        planned(*step, {.world = 4, .pipeline = 4}, micro_batches).stages[0].peak_bytes);
  }
  CHECK(peaks[1] > peaks[0]);
  CHECK(peaks[2] > peaks[1]);
  CHECK(peaks[2] - peaks[1] == 2 * (peaks[1] - peaks[0]));
  CHECK(peaks[3] == peaks[2]);
}

TEST_CASE("pipeline: the step is that of its schedule, and who waits in it is counted") {
  const auto step = gpt_step(4, {.micro_batches = 2});
  const WorldPlan plan = planned(*step, {.world = 4, .pipeline = 4}, 6);
  std::vector<StageSeconds> stages;
  double kernels = 0.0;
  double slowest = 0.0;
  for (const DeviceShard& shard : plan.stages) {
    stages.push_back(shard.micro_batch);
    CHECK(shard.micro_batch.backward > shard.micro_batch.forward);
    if (shard.micro_batch.sum() <= slowest) continue;
    slowest = shard.micro_batch.sum();
    kernels = shard.time.kernel_seconds;
  }
  CHECK(plan.step_seconds > pipeline_seconds(stages, 6));
  CHECK(plan.step_seconds < 1.2 * pipeline_seconds(stages, 6));
  CHECK(plan.waiting_seconds() == doctest::Approx(plan.step_seconds - kernels));
  CHECK(plan.bubble_seconds > slowest);
  const WorldPlan more = planned(*step, {.world = 4, .pipeline = 4}, 60);
  CHECK(more.bubble_seconds / more.step_seconds < plan.bubble_seconds / plan.step_seconds);
  CHECK(planned(*step, {.world = 1}, 6).bubble_seconds == 0.0);
}

// Kernels that take longer than messages do.
TEST_CASE("pipeline: more stages of equal layers are never slower") {
  const ModelArguments layers = {
      {"dims", Ints{512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512}}};
  const auto step = compiled_step("mlp", layers, {.batch = 8192, .micro_batches = 8});
  double before = planned(*step, {.world = 1}, 8).step_seconds;
  for (std::int64_t count : {2, 3, 4, 5, 6, 7, 8}) {  // within a node
    CAPTURE(count);
    const WorldPlan plan = planned(*step, {.world = count, .pipeline = count}, 8);
    CHECK(plan.step_seconds < before * 1.001);
    before = plan.step_seconds;
    for (const DeviceShard& stage : plan.stages) CHECK(stage.parameter_bytes > 0);
  }
}

TEST_CASE("pipeline: the loss stays with the layer that makes its scores") {
  const auto step = gpt_step(4);
  for (std::int64_t count : {2, 4, 6}) {
    for (const PipelineStage& stage : cut(*step, count)) {
      CHECK_FALSE(parameters(stage.graph).empty());
    }
  }
}

TEST_CASE("pipeline: more stages than the graph has pieces are refused") {
  const auto step = mlp_step();
  const std::optional<Error> error = error_of([&] { cut(*step, 100); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(contains(error->message(), "stages can be made"));
}

TEST_CASE("pipeline: PyTorch's peak is that of its fullest stage, whatever our budget") {
  const auto step = gpt_step(2, {.batch = 4, .sequence = 16, .micro_batches = 4});
  WorldOptions options = world_of({.world = 2, .pipeline = 2});
  options.micro_batches = 4;
  const WorldPlan plain = plan_kept(*step, options);
  std::int64_t most = 0;
  for (const DeviceShard& stage : plain.stages) most = std::max(most, stage.eager_bytes);
  CHECK(plain.eager_bytes() == most);
  CHECK(plain.rematerialized_nodes() == 0);
  options.budget_bytes = plain.device().peak_bytes * 85 / 100;
  const WorldPlan within = plan_kept(*step, options);
  CHECK(within.eager_bytes() == most);
  CHECK(within.rematerialized_nodes() ==
        within.stages[0].rematerialized_nodes + within.stages[1].rematerialized_nodes);
  CHECK(within.rematerialized_nodes() > 0);
}

TEST_CASE("pipeline: a budget is kept with micro-batches in flight, or refused") {
  const auto step = gpt_step(2, {.batch = 4, .sequence = 16, .micro_batches = 4});
  WorldOptions options = world_of({.world = 2, .pipeline = 2});
  options.micro_batches = 4;
  const WorldPlan plain = plan_kept(*step, options);
  options.budget_bytes = plain.device().peak_bytes * 85 / 100;
  const WorldPlan within = plan_kept(*step, options);
  for (const DeviceShard& shard : within.stages) CHECK(shard.peak_bytes <= *options.budget_bytes);
  CHECK(within.stages[0].rematerialized_nodes > 0);
}

TEST_CASE("pipeline: the least budget of a refusal has a plan") {
  const auto step =
      compiled_step("mlp", {{"dims", Ints{16, 64, 64, 64, 8}}}, {.batch = 256, .micro_batches = 4});
  WorldOptions options = world_of({.world = 2, .pipeline = 2});
  options.micro_batches = 4;
  const auto refusal = [&](std::int64_t budget) {
    options.budget_bytes = budget;
    return error_of([&] { plan_kept(*step, options); });
  };
  std::int64_t least = 0;
  for (std::int64_t budget : {1000, 100'000}) {
    const std::optional<Error> error = refusal(budget);
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kOutOfMemory);
    CHECK(contains(error->message(), "needed by node '"));
    const std::string_view start = "the least budget with a plan is ";
    REQUIRE(error->hint().starts_with(start));
    const std::int64_t said = std::stoll(error->hint().substr(start.size()));
    CHECK((least == 0 || said == least));  // whatever the budget that it is asked for
    least = said;
  }
  options.budget_bytes = least;
  const WorldPlan plan = plan_kept(*step, options);
  CHECK(plan.device().peak_bytes <= least);
}

}  // namespace trainscope::test
