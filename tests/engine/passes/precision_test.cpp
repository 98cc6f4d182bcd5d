// precision and upcast_gradients: which nodes run in bf16, where casts stand, what stays f32.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/ir/op_def.h"
#include "tests/engine/passes/fuse/spellings.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

CompileOptions options(StepPrecision precision, GraphMode mode = GraphMode::kTrain) {
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kCrossEntropy, .output = "y"};
  options.training.mode = mode;
  options.training.precision = precision;
  return options;
}

constexpr std::string_view kMlp =
    "(float[4,3] x) => (float[4,5] y) <float[3,8] w = {1,2,3,4,5,6,7,8,-1,-2,-3,-4,-5,-6,-7,-8,"
    "1,-1,1,-1,1,-1,1,-1}, float[8] b = {1,2,3,4,5,6,7,8}, float[8,5] v = {1,0,0,0,0,0,1,0,0,0,0,"
    "0,1,0,0,0,0,0,1,0,0,0,0,0,1,1,0,0,0,0,0,1,0,0,0,0,0,1,0,0}>"
    "{ h = Gemm(x, w, b)  r = Relu(h)  y = MatMul(r, v) }";

DType dtype_of(const Graph& graph, std::string_view name) {
  return graph.value(graph.find(name)).type.dtype;
}

std::int64_t counter(const Stage& stage, const std::string& name) {
  const auto found = stage.counters.find(name);
  return found == stage.counters.end() ? 0 : found->second;
}

// After precision alone, of a forward graph.
Graph lowered(std::string_view text) {
  TrainingOptions training;
  training.mode = GraphMode::kInference;
  training.precision = StepPrecision::kBF16;
  return passed(graph(text), {"precision"}, training);
}

bool has_near_miss(const Stage& stage, std::string_view reason) {
  return std::ranges::any_of(stage.near_misses,
                             [&](const NearMiss& miss) { return contains(miss.reason, reason); });
}

}  // namespace

TEST_CASE("precision: matmuls and what follows them run in bf16, outputs stay f32") {
  const Graph graph = lowered(kMlp);
  CHECK(node_lines(graph) ==
        "bf16/Cast bf16[4,3] = Cast(x) to=16\n"
        "bf16/Cast_1 bf16[3,8] = Cast(w) to=16\n"
        "bf16/Cast_2 bf16[8] = Cast(b) to=16\n"
        "h bf16[4,8] = Gemm(bf16/Cast, bf16/Cast_1, bf16/Cast_2)\n"
        "r bf16[4,8] = Relu(h)\n"
        "bf16/Cast_3 bf16[8,5] = Cast(v) to=16\n"
        "y/bf16 bf16[4,5] = MatMul(r, bf16/Cast_3)\n"
        "y f32[4,5] = Cast(y/bf16) to=1\n"
        "output y\n");
}

TEST_CASE("precision: without it nothing changes, and a second run changes nothing") {
  CHECK_FALSE(changes(graph(kMlp), "precision"));
  TrainingOptions training;
  training.precision = StepPrecision::kBF16;
  CHECK(changes(graph(kMlp), "precision", training));
  CHECK_FALSE(changes(lowered(kMlp), "precision", training));
}

TEST_CASE("precision: gradients of parameters are f32 as their matmuls gave them") {
  const Stages all = stages(kMlp, options(StepPrecision::kBF16, GraphMode::kGradients));
  const Graph& graph = all.back().graph;
  for (const GradientOf& gradient : graph.gradients) {
    CAPTURE(graph.value(gradient.of).name);
    CHECK(graph.value(gradient.gradient).type.dtype == DType::kF32);
    const NodeId producer = graph.value(gradient.gradient).producer;
    REQUIRE(producer != kNoNode);
    CHECK(graph.node(producer).op->name != "Cast");
  }
  CHECK(graph.gradients.size() == 3);
  CHECK(counter(stage_named(all, "upcast_gradients"), "results left in f32") == 3);
  CHECK(graph.value(graph.loss).type.dtype == DType::kF32);
}

TEST_CASE("precision: a parameter is cast once, its gradients are added in f32") {
  const Stages all = stages(
      "(float[4,3] x) => (float[4,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}>"
      "{ h = MatMul(x, w)  r = Tanh(h)  y = MatMul(r, w) }",
      options(StepPrecision::kBF16, GraphMode::kGradients));
  const Graph& graph = all.back().graph;
  const auto casts_of_w = std::ranges::count_if(
      graph.value(graph.find("w")).uses,
      [&](const Use& use) { return graph.node(use.node).op->name == "Cast"; });
  CHECK(casts_of_w == 1);
  const ValueId gradient = graph.gradients.front().gradient;
  const Node& sum = graph.node(graph.value(gradient).producer);
  CHECK(sum.op->name == "MatMulAdd");
  CHECK(graph.value(sum.inputs[2]).type.dtype == DType::kF32);
  CHECK(graph.value(gradient).type.dtype == DType::kF32);
}

TEST_CASE("precision: an op without a form in bf16 stands between casts and says so") {
  const Stages all = stages(
      "(float[4,3] x) => (float[4,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}>"
      "{ h = MatMul(x, w)  e = Exp(h)  y = MatMul(e, w) }",
      options(StepPrecision::kBF16));
  const Stage& stage = stage_named(all, "precision");
  CHECK(dtype_of(stage.graph, "h") == DType::kBF16);
  CHECK(dtype_of(stage.graph, "e") == DType::kF32);
  CHECK(counter(stage, "nodes in f32 between casts") == 1);
  CHECK(counter(stage, "nodes in bf16") == 2);
  CHECK(has_near_miss(stage, "Exp has no form in bf16"));
}

TEST_CASE("precision: an embedding is looked up in f32, its rows are stored in bf16") {
  const Graph graph = lowered(
      "(int64[4] ids) => (float[4,3] y) <float[7,3] table = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,"
      "16,17,18,19,20,21}, float[3] s = {1,2,3}, float[3] b = {1,2,3}>"
      "{ e = Gather(table, ids)  n = LayerNormalization(e, s, b)  y = Neg(n) }");
  CHECK(node_lines(graph) ==
        "e f32[4,3] = Gather(table, ids)\n"
        "bf16/Cast bf16[4,3] = Cast(e) to=16\n"
        "n bf16[4,3] = LayerNormalization(bf16/Cast, s, b)\n"
        "y/bf16 bf16[4,3] = Neg(n)\n"
        "y f32[4,3] = Cast(y/bf16) to=1\n"
        "output y\n");
}

TEST_CASE("precision: a constant that would become infinite keeps its op in f32") {
  CompileOptions masked = options(StepPrecision::kBF16);
  masked.import.frozen = {"k"};
  masked.passes.disabled = {"fuse_bias"};
  const Stages all = stages(
      "(float[4,3] x) => (float[4,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9},"
      " float[3] k = {0, -3.4e38, 0}>"
      "{ h = MatMul(x, w)  m = Add(h, k)  y = Neg(m) }",
      masked);
  const Stage& stage = stage_named(all, "precision");
  CHECK(dtype_of(stage.graph, "h") == DType::kBF16);
  CHECK(dtype_of(stage.graph, "m") == DType::kF32);
  CHECK(has_near_miss(stage, "too large"));
}

TEST_CASE("precision: what meets an f32 input of the model is not rounded to bf16 with it") {
  const Stages all = stages(
      "(float[4,3] x, float[4,3] z) => (float[4,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}>"
      "{ h = MatMul(x, w)  m = Add(h, z)  y = Neg(m) }",
      options(StepPrecision::kBF16));
  const Stage& stage = stage_named(all, "precision");
  CHECK(dtype_of(stage.graph, "m") == DType::kF32);
  CHECK(has_near_miss(stage, "its input 'z' is f32"));
}

TEST_CASE("precision: gradients in bf16 and fp16 are near those in f32") {
  const Stages plain = stages(kMlp, options(StepPrecision::kF32, GraphMode::kGradients));
  Tensors inputs = random_inputs(plain.back().graph, 7);
  inputs.at("labels") = Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 4, 2, 1});
  const Tensors want = results_of(plain.back().graph, inputs);
  const auto error = [&](StepPrecision precision) {
    const Stages mixed = stages(kMlp, options(precision, GraphMode::kGradients));
    return difference(results_of(mixed.back().graph, inputs), want);
  };
  const double bf16 = error(StepPrecision::kBF16);
  const double fp16 = error(StepPrecision::kF16);
  CHECK(bf16 < 0.05);
  CHECK(bf16 > 0.0);
  CHECK(fp16 < bf16 / 4.0);
}

}  // namespace trainscope::test
