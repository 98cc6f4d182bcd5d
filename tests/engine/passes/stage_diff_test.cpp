// Diffs of stages: of one compilation by its logs, of two by names and sources.
#include "engine/passes/stage_diff.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr const char* kModel =
    "(float[4,3] x) => (float[4,2] y) <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15},"
    " float[5] b = {1,2,3,4,5}, float[5,2] v = {1,2,3,4,5,6,7,8,9,10}>"
    "{ m = MatMul(x, w)  h = Add(m, b)  r = Relu(h)  y = MatMul(r, v) }";

Stages trained(std::string_view text) {
  CompileOptions options;
  options.training.mode = GraphMode::kTrain;
  options.training.loss.kind = LossKind::kMse;
  return stages(text, options);
}

struct Compilation {
  Stages stages;
  std::shared_ptr<const History> history;

  explicit Compilation(std::string_view text) : stages(trained(text)) {
    History logs;
    for (const Stage& stage : stages) {
      logs.push_back({.label = stage.label, .rewrites = stage.rewrites});
    }
    history = std::make_shared<const History>(std::move(logs));
  }
  std::size_t find(std::string_view pass) const {
    const auto at = std::ranges::find(stages, pass, &Stage::name);
    REQUIRE(at != stages.end());
    return static_cast<std::size_t>(at - stages.begin());
  }
  StageDiff diff(std::string_view a, std::string_view b) const {
    return diff_stages(history, {.stage = find(a), .graph = stages[find(a)].graph},
                       {.stage = find(b), .graph = stages[find(b)].graph});
  }
};

const DiffRow& row(const StageDiff& diff, std::string_view name, bool is_node) {
  const auto at = std::ranges::find_if(diff.rows, [&](const DiffRow& each) {
    return each.thing.name == name && each.thing.is_node == is_node;
  });
  REQUIRE(at != diff.rows.end());
  return *at;
}

}  // namespace

TEST_CASE(
    "stage diff: over many stages each row has its stage and reason, and parents in the first") {
  const Compilation c(kModel);
  const StageDiff diff = c.diff("imported", "optimizer_step");
  CHECK(diff.unexplained == 0);
  CHECK(row(diff, "Add_1", true).kind == "inside");
  CHECK(row(diff, "Add_1", true).stage.ends_with("-fuse_bias"));
  CHECK(row(diff, "w", false).kind == "kept");
  const DiffRow& gradient = row(diff, "grad/v", false);
  CHECK(gradient.kind == "added");
  CHECK(gradient.stage.ends_with("-differentiate"));
  REQUIRE(!gradient.others.empty());
  const Graph& imported = c.stages.front().graph;
  for (const NamedThing& parent : gradient.others) {
    CAPTURE(parent.name);
    CHECK(parent.is_node);
    CHECK(imported.find_node(parent.name) != kNoNode);
  }
  for (const DiffRow& each : diff.rows) CHECK_FALSE(each.reason.empty());
}

TEST_CASE("stage diff: a stage and itself") {
  const Compilation c(kModel);
  const StageDiff diff = c.diff("loss", "loss");
  CHECK(diff.nodes.size() == 1);
  CHECK(diff.nodes.contains("kept"));
  for (const DiffRow& each : diff.rows) CHECK(each.changes.empty());
}

TEST_CASE("stage diff: two compilations by names, then by sources") {
  const Graph a = graph("(float[4,3] x) => (float[4,3] y) { h = Relu(x)  y = Neg(h) }");
  const Graph b = graph("(float[4,3] x) => (float[4,3] y) { h = Relu(x)  e = Exp(h)  y = Neg(e) }");
  const StageDiff same =
      compare_graphs(a, graph("(float[4,3] x) => (float[4,3] y) { h = Relu(x)  y = Neg(h) }"));
  CHECK(same.nodes == std::map<std::string, std::int64_t>{{"same", 2}});
  CHECK(same.values == std::map<std::string, std::int64_t>{{"same", 3}});
  const StageDiff diff = compare_graphs(a, b);
  CHECK(row(diff, "Relu_0", true).kind == "same");
  CHECK(row(diff, "Exp_1", true).kind == "only in B");
  CHECK(row(diff, "e", false).kind == "only in B");
  CHECK(row(diff, "e", false).changes == "f32[4,3]");
  CHECK(row(diff, "Neg_1", true).kind == "only in A");
  CHECK(row(diff, "y", false).kind == "same");
  const Graph wider = graph("(float[8,3] x) => (float[8,3] y) { h = Relu(x)  y = Neg(h) }");
  CHECK(row(compare_graphs(a, wider), "x", false).changes == "f32[4,3] -> f32[8,3]");
}

}  // namespace trainscope::test
