// fuse_norm_relu: batch norm and Relu in networks as they are exported and built, what stays and
// why, and what the gradient keeps.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// training_form names the results of norms anew. Two norms' vectors, running statistics among them;
// x is x0 times a number per channel.
const Fusion kFusion{
    .pass = "fuse_norm_relu",
    .fused = "BatchNormRelu",
    .inputs =
        "(float[2,3,4,5] x0) => (float[2,3,4,5] y) <float[3,1,1] p = {0.5,-1,1.5}, float[3] s"
        " = {1,-2,0.5}, float[3] b = {0.1,0.2,-0.3}, float[3] mean = {0,1,2}, float[3] var ="
        " {1,2,3}, float[3] s2 = {2,1,1}, float[3] b2 = {0,0.5,1}, float[3] mean2 = {3,2,1},"
        " float[3] var2 = {1,1,2}, float[3,1,1] row = {1,-1,2}>",
    .before = "x = Mul(x0, p)",
    .constants = {}};

// The line of the only node of an op in the graph that the pass leaves.
std::string fused_line(std::string_view nodes) {
  const std::string lines =
      node_lines(stage_named(stages_of(kFusion, nodes), "fuse_norm_relu").graph);
  const std::size_t at = lines.find(" = ts.BatchNormRelu(");
  REQUIRE(at != std::string::npos);
  return lines.substr(at + 3, lines.find('\n', at) - at - 3);
}

CompileOptions inference() {
  CompileOptions options;
  options.training.mode = GraphMode::kInference;
  return options;
}

}  // namespace

TEST_CASE("fuse_norm_relu: PyTorch's form becomes an op of its own") {
  const Graph model = graph(OnnxModel::parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"pytorch\"> g (float[2,3] x) => "
      "(float[2,3] y) <float[3] s = {1,2,3}, float[3] mean = {5,5,5}, float[3] var = {4,4,4}>"
      "{ n = BatchNormalization(x, s, s, mean, var)  y = Relu(n) }"));
  TrainingOptions options;
  options.mode = GraphMode::kTrain;
  const Graph fused = passed(model, {"training_form", "fuse_norm_relu"}, options);
  CHECK(count_ops(fused, "SampleBatchNormRelu") == 1);
  CHECK(count_ops(fused, "Relu") == 0);
}

TEST_CASE("fuse_norm_relu: layers as they are exported and built") {
  constexpr Spelling kSpellings[] = {
      {"our builders, and exports of a model in evaluation: training_form rewrites the norm",
       "n = BatchNormalization(x, s, b, mean, var)  y = Relu(n)", 2},
      {"PyTorch's exporters of a model in training",
       "n, m, v = BatchNormalization <training_mode = 1, momentum = 0.75, epsilon = 0.0078125>"
       " (x, s, b, mean, var)  y = Relu(n)",
       2},
      {"a residual that comes second",
       "n = BatchNormalization(x, s, b, mean, var)  a = Add(n, x)  y = Relu(a)", 3},
      {"a residual that comes first",
       "n = BatchNormalization(x, s, b, mean, var)  a = Add(x0, n)  y = Relu(a)", 3},
      {"a residual of fewer channels that has a norm of its own",
       "n = BatchNormalization(x, s, b, mean, var)  t = Tanh(x)"
       "  k = BatchNormalization(t, s2, b2, mean2, var2)  a = Add(n, k)  y = Relu(a)",
       3},
      {"another activation behind",
       "n = BatchNormalization(x, s, b, mean, var)  r = Relu(n)  y = Tanh(r)", 2},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kFusion, spelling);
  CHECK(fused_line(kSpellings[1].nodes) ==
        "ts.BatchNormRelu(x, s, b, mean, var) epsilon=0.0078125 momentum=0.75");
  CHECK(fused_line(kSpellings[3].nodes) == "ts.BatchNormRelu(x, s, b, mean, var, x0)");
}

TEST_CASE("fuse_norm_relu: of two norms that are added the one that nothing else needs") {
  CHECK(fused_line("n = BatchNormalization(x, s, b, mean, var)"
                   "  k = BatchNormalization(x, s2, b2, mean2, var2)"
                   "  a = Add(n, k)  r = Relu(a)  y = Add(r, n)") ==
        "ts.BatchNormRelu(x, s2, b2, mean2, var2, BatchNormalization)");
}

TEST_CASE("fuse_norm_relu: the gradient reads x and the result, and nothing between them") {
  const std::string_view nodes =
      "n = BatchNormalization(x, s, b, mean, var)  a = Add(x, n)  y = Relu(a)";
  const Graph step = stages_of(kFusion, nodes).back().graph;
  CHECK(count_ops(step, "BatchNormReluGrad") == 1);
  for (const char* op : {"Relu", "ReluGrad", "BatchNormalization", "BatchNormalizationGrad"}) {
    CHECK(count_ops(step, op) == 0);
  }
  const std::string lines = node_lines(step);
  CHECK(contains(lines, " = ts.BatchNormReluGrad("));
  CHECK(contains(lines, ", y, x, s)"));
}

TEST_CASE("fuse_norm_relu: a residual without a gradient gets none") {
  const std::string_view nodes =
      "n = BatchNormalization(x, s, b, mean, var)  a = Add(x0, n)  y = Relu(a)";
  const Graph step = stages_of(kFusion, nodes).back().graph;
  for (NodeId id : step.order()) {
    if (step.node(id).op->name == "BatchNormReluGrad") CHECK(step.node(id).outputs.size() == 3);
  }
}

TEST_CASE("fuse_norm_relu: what stays says why") {
  const auto near_miss = [](std::string_view nodes) { return near_misses_of(kFusion, nodes); };
  CHECK(near_miss("n = BatchNormalization(x, s, b, mean, var)  r = Relu(n)  y = Add(r, n)") ==
        "'BatchNormalization' has 2 readers");
  CHECK(near_miss("n = BatchNormalization(x, s, b, mean, var)  a = Add(n, n)  y = Relu(a)") ==
        "'BatchNormalization' has 2 readers");
  CHECK(near_miss("n = BatchNormalization(x, s, b, mean, var)  a = Add(x, n)  r = Relu(a)"
                  "  y = Add(r, a)") == "'a' has 2 readers");
  CHECK(near_miss("n = BatchNormalization(x, s, b, mean, var)  a = Add(n, row)  y = Relu(a)") ==
        "'row' is f32[3,1,1], the norm's result f32[2,3,4,5]");
  CHECK(
      near_misses_with_gradient_of(
          "a", kFusion, "n = BatchNormalization(x, s, b, mean, var)  a = Add(n, x)  y = Relu(a)") ==
      "the gradient of 'a' is asked for");
  const Stages kept = stages_of(
      kFusion, "n = BatchNormalization(x, s, b, mean, var)  a = Add(n, row)  y = Relu(a)");
  CHECK(matched_in_near_misses(stage_named(kept, "fuse_norm_relu")) == "y a BatchNormalization");
}

TEST_CASE("fuse_norm_relu: a layer that is called twice is fused where it updates last") {
  const std::string_view nodes =
      "n = BatchNormalization(x, s, b, mean, var)  r = Relu(n)"
      "  k = BatchNormalization(r, s, b, mean, var)  y = Relu(k)";
  const Stages all = stages_of(kFusion, nodes);
  const Stage& stage = stage_named(all, "fuse_norm_relu");
  CHECK(count_ops(stage.graph, "BatchNormRelu") == 1);
  REQUIRE(stage.near_misses.size() == 1);
  CHECK(contains(stage.near_misses[0].reason, "are read in the same step"));
  CHECK(changes_no_result(kFusion, nodes));
}

TEST_CASE("fuse_norm_relu: inference and other activations stay, without a word") {
  for (const std::string_view nodes :
       {"n = BatchNormalization(x, s, b, mean, var)  y = Tanh(n)",
        "n = BatchNormalization(x, s, b, mean, var)  a = Mul(n, x)  y = Relu(a)",
        "n = Tanh(x)  a = Add(n, x)  y = Relu(a)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(kFusion, nodes).empty());
  }
  const Stages all = stages(
      text_of(kFusion, "n = BatchNormalization(x, s, b, mean, var)  y = Relu(n)"), inference());
  CHECK_FALSE(stage_named(all, "fuse_norm_relu").changed);
  CHECK(stage_named(all, "fuse_norm_relu").near_misses.empty());
}

}  // namespace trainscope::test
