// What every spelling of a fused op is checked for.
#include "tests/engine/passes/fuse/spellings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/core/text.h"

namespace trainscope::test {
namespace {

// Roundings of f32 in other orders; a wrong constant is far above it.
constexpr double kRounding = 4e-6;

const Node* first_node(const Graph& graph, std::string_view op) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->name == op) return &graph.node(id);
  }
  return nullptr;
}

std::string joined_near_misses(const Stage& stage) {
  CHECK_FALSE(stage.changed);
  std::vector<std::string> reasons;
  for (const NearMiss& miss : stage.near_misses) reasons.push_back(miss.reason);
  return join(reasons, "; ");
}

}  // namespace

Fusion fusion_on_rows(std::string_view pass, std::string_view fused) {
  return {.pass = pass,
          .fused = fused,
          .inputs =
              "(float[2,3,5] x0) => (float[2,3,5] y) <float[5] p = {0.5,-1,1.5,2,-2.5}, float[5] w"
              " = {1,2,-1,0.5,3}, float[5] b = {0.1,0.2,0.3,-0.4,0.5}, float[1,5] row ="
              " {1,2,-1,0.5,3}, float half = {0.5}, float one = {1}, float two = {2}, float three ="
              " {3}, float minus = {-0.5}, float root = {1.4142135}, float inverse = {0.70710677},"
              " float cubic = {0.044715}, float slope = {0.7978846}, float quick = {1.702},"
              " float[1,1] one11 = {1}, float literal = {1.414}, float off = {1.2}, float eps ="
              " {0.0009765625}, float negative = {-0.1}, int64[1] last = {-1}, int64 square = {2}>",
          .before = "x = Mul(x0, p)",
          .constants = {"half", "one", "two", "three", "minus", "root", "inverse", "cubic", "slope",
                        "quick", "one11", "literal", "off", "eps", "negative", "last", "square"}};
}

std::string text_of(const Fusion& fusion, std::string_view nodes) {
  return fmt::format("{} {{ {} {} }}", fusion.inputs, fusion.before, nodes);
}

CompileOptions options_of(const Fusion& fusion) {
  CompileOptions options;
  options.import.frozen = fusion.constants;
  options.import.trainable = fusion.trained;
  options.training.mode = GraphMode::kGradients;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  return options;
}

Stages stages_of(const Fusion& fusion, std::string_view nodes, bool fuse) {
  CompileOptions options = options_of(fusion);
  if (!fuse) options.passes.disabled = {std::string(fusion.pass)};
  return stages(text_of(fusion, nodes), options);
}

const Stage& stage_named(const Stages& stages, std::string_view name) {
  const auto found = std::ranges::find(stages, name, &Stage::name);
  REQUIRE(found != stages.end());
  return *found;
}

void check_spelling(const Fusion& fusion, const Spelling& spelling) {
  CAPTURE(spelling.name);
  const Stages with = stages_of(fusion, spelling.nodes);
  const Stages without = stages_of(fusion, spelling.nodes, false);
  const Stage& stage = stage_named(with, fusion.pass);
  CHECK(stage.counters.at("fused") == 1);
  CHECK(stage.near_misses.empty());
  CHECK(count_ops(stage.graph, fusion.fused) == 1);
  const Stage& before = *(&stage - 1);
  // All of them are gone, and no dead ones are left.
  CHECK(stage.nodes == before.nodes - spelling.count + 1);
  CHECK(stage.cost.bytes_written < before.cost.bytes_written);
  const Node* fused = first_node(stage.graph, fusion.fused);
  REQUIRE(fused != nullptr);
  CHECK(fused->provenance.sources.size() >= static_cast<std::size_t>(spelling.count));
  CHECK(fused->provenance.pass == fusion.pass);

  const Graph& fused_step = with.back().graph;
  const Graph& plain_step = without.back().graph;
  CHECK(fused_step.gradients.size() > 0);
  const Tensors inputs = random_inputs(plain_step, 3);
  CHECK(difference(results_of(fused_step, inputs), results_of(plain_step, inputs)) < kRounding);

  TrainingOptions options;
  CHECK_FALSE(changes(stage.graph, fusion.pass, options));
}

bool changes_no_result(const Fusion& fusion, std::string_view nodes) {
  CAPTURE(nodes);
  const Stages with = stages_of(fusion, nodes);
  const Stages without = stages_of(fusion, nodes, false);
  const Graph& plain = without.back().graph;
  const Tensors inputs = random_inputs(plain, 3);
  CHECK(difference(results_of(with.back().graph, inputs), results_of(plain, inputs)) < kRounding);
  return stage_named(with, fusion.pass).changed;
}

std::string matched_in_near_misses(const Stage& stage) {
  std::map<std::string, std::string> results;
  for (NodeId id : stage.graph.order()) {
    const Node& node = stage.graph.node(id);
    results.emplace(node.name, stage.graph.value(node.outputs[0]).name);
  }
  std::vector<std::string> misses;
  for (const NearMiss& miss : stage.near_misses) {
    std::vector<std::string> names;
    for (const std::string& node : miss.nodes) names.push_back(results.at(node));
    misses.push_back(join(names, " "));
  }
  return join(misses, "; ");
}

std::string near_misses_of(const Fusion& fusion, std::string_view nodes) {
  return joined_near_misses(stage_named(stages_of(fusion, nodes), fusion.pass));
}

std::string near_misses_with_gradient_of(std::string_view value, const Fusion& fusion,
                                         std::string_view nodes) {
  CompileOptions options = options_of(fusion);
  options.training.gradient_of = {std::string(value)};
  const Stages all = stages(text_of(fusion, nodes), options);
  const Graph& step = all.back().graph;
  CHECK(std::ranges::any_of(
      step.gradients, [&](const GradientOf& each) { return step.value(each.of).name == value; }));
  return joined_near_misses(stage_named(all, fusion.pass));
}

}  // namespace trainscope::test
