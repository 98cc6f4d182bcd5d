// fuse_norm_grad_add: which additions the gradient of a norm takes over, in place, that numbers
// stay, and why others stay.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/ir/op_def.h"
#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

const Fusion kRows = fusion_on_rows("fuse_norm_grad_add", "");

// Forward nodes whose norm reads x beside somebody else.
struct Layer {
  std::string_view name;
  std::string_view nodes;
  std::string_view gradient;  // op
};

std::int64_t saved(const Stages& stages) {
  const auto& counters = stage_named(stages, "fuse_norm_grad_add").counters;
  const auto found = counters.find("additions saved");
  return found == counters.end() ? 0 : found->second;
}

// A graph with ops of ours in it, whose norm is one of rows of 3.
Graph own(std::string_view nodes) {
  const std::string header = R"(<ir_version: 8, opset_import: ["" : 17, "ai.trainscope" : 1]> g )";
  return graph(OnnxModel::parse_text(
      header + "(float[2,3] d, float[2,3] x, float[2,3] s, float[3] w) => " + std::string(nodes)));
}

Stage after_pass(Graph graph) {
  const TrainingOptions options;
  const PassContext context{.ops = op_table(), .options = options, .pass = {}};
  const auto pass = std::ranges::find(default_passes(), "fuse_norm_grad_add", &Pass::name);
  REQUIRE(pass != default_passes().end());
  return run_passes(std::move(graph), {&*pass, 1}, context, {}).back();
}

std::string why_not(std::string_view nodes) {
  const Stage stage = after_pass(own(nodes));
  CHECK_FALSE(stage.changed);
  return stage.near_misses.empty() ? "" : stage.near_misses[0].reason;
}

// The gradients of norms that add something.
std::vector<Node> sums_in(const Graph& graph) {
  std::vector<Node> sums;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const bool norm =
        node.op->name == "LayerNormalizationGrad" || node.op->name == "RMSNormalizationGrad";
    if (norm && node.inputs.size() == 4) sums.push_back(node);
  }
  return sums;
}

constexpr std::string_view kLayer =
    "(float[4,3] x) => (float[4,3] y) <float[3,3] e = {1,2,-1,0.5,3,1,2,-2,1}, float[3] w ="
    " {1,2,3}> { h = MatMul(x, e)  n = LayerNormalization <axis = -1> (h, w)  t = MatMul(n, e)"
    "  y = Add(h, t) }";
constexpr std::string_view kNorm = "n = ai.trainscope.LayerNormalizationGrad (d, x, w)";

}  // namespace

TEST_CASE("fuse_norm_grad_add: layers before which a norm stands") {
  constexpr Layer kLayers[] = {
      {"as our builders and PyTorch's dynamo exporter write it",
       "n = LayerNormalization <axis = -1> (x, w, b)  f = Tanh(n)  y = Add(x, f)",
       "LayerNormalizationGrad"},
      {"the norm spelled out, as PyTorch's TorchScript exporter writes it before opset 17",
       "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Pow(d, two)"
       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  n = Div(d, r)"
       "  a = Mul(n, w)  l = Add(a, b)  f = Tanh(l)  y = Add(f, x)",
       "LayerNormalizationGrad"},
      {"a norm without a mean",
       "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
       "  u = Div(x, r)  n = Mul(u, w)  f = Sin(n)  y = Add(f, x)",
       "RMSNormalizationGrad"},
      {"another op beside the norm",
       "n = LayerNormalization <axis = -1> (x, w)  f = Tanh(x)  y = Sub(n, f)",
       "LayerNormalizationGrad"},
  };
  for (const Layer& layer : kLayers) {
    CAPTURE(layer.name);
    CHECK(changes_no_result(kRows, layer.nodes));
    const Stages with = stages_of(kRows, layer.nodes);
    CHECK(saved(with) == 1);
    const Stage& stage = stage_named(with, "fuse_norm_grad_add");
    const Stage& before = *(&stage - 1);
    CHECK(stage.nodes == before.nodes - 1);
    CHECK(stage.cost.bytes_read + stage.cost.bytes_written <
          before.cost.bytes_read + before.cost.bytes_written);
    CHECK(stage.near_misses.empty());
    REQUIRE(sums_in(stage.graph).size() == 1);
    CHECK(sums_in(stage.graph)[0].op->name == layer.gradient);
    CHECK_FALSE(changes(stage.graph, "fuse_norm_grad_add"));
  }
}

TEST_CASE("fuse_norm_grad_add: of two norms of one value the second adds the first") {
  constexpr std::string_view kTwo =
      "n = LayerNormalization <axis = -1> (x, w, b)  k = LayerNormalization <axis = -1> (x, p)"
      "  f = Tanh(n)  g = Sin(k)  a = Add(f, g)  y = Add(x, a)";
  CHECK(changes_no_result(kRows, kTwo));
  CHECK(saved(stages_of(kRows, kTwo)) == 2);
}

TEST_CASE("fuse_norm_grad_add: either operand, and in the other one's bytes") {
  for (const std::string sum : {"Add(n, s)", "Add(s, n)"}) {
    CAPTURE(sum);
    const Graph before = own("(float[2,3] y) { " + std::string(kNorm) + "  y = " + sum + " }");
    const Graph after = passed(before, {"fuse_norm_grad_add"});
    CHECK(node_lines(after) == "y f32[2,3] = ts.LayerNormalizationGrad(d, x, w, s)\noutput y\n");
    const Tensors inputs = random_inputs(before, 3);
    CHECK(difference(outputs_of(after, inputs), outputs_of(before, inputs)) < 1e-6);
  }
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  const std::unique_ptr<Compiled> step = compile(model(kLayer), options);
  const Program& program = step->program;
  const auto buffer = [&program](ValueId v) { return program.place(v).buffer; };
  const std::vector<Node> sums = sums_in(program.graph);
  REQUIRE(sums.size() == 1);
  CHECK(buffer(sums[0].inputs[3]) == buffer(sums[0].outputs[0]));
}

TEST_CASE("fuse_norm_grad_add: where mixed precision keeps the residual in bf16") {
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  options.training.precision = StepPrecision::kBF16;
  const Stages all = stages(kLayer, options);
  CHECK(saved(all) == 1);
  for (const Node& node : sums_in(all.back().graph)) {
    CHECK(all.back().graph.value(node.outputs[0]).type.dtype == DType::kBF16);
  }
}

TEST_CASE("fuse_norm_grad_add: what stays, and why") {
  const std::string norm(kNorm);
  CHECK(why_not("(float[2,3] y, float[2,3] z) { " + norm + "  y = Add(n, s)  z = Exp(n) }") ==
        "'n' has 2 readers");
  CHECK(why_not("(float[2,3] n, float[2,3] y) { " + norm + "  y = Add(n, s) }") ==
        "'n' is asked for");
  CHECK(why_not("(float[2,3] y) { " + norm + "  y = Add(n, w) }") ==
        "'w' is f32[3], the norm's gradient f32[2,3]");
  CHECK(why_not("(float[2,3] y) { " + norm + "  t = Tanh(s)  y = Add(n, t) }") ==
        "'t' is not made before the norm's gradient");
  CHECK(matched_in_near_misses(after_pass(
            own("(float[2,3] y) { " + norm + "  t = Tanh(s)  y = Add(n, t) }"))) == "y n");
  // What the same gradient makes: a parameter that the norm reads twice.
  CHECK(why_not("(float[2,3] y) { n, k = ai.trainscope.LayerNormalizationGrad <axis = 0> (d, x, s)"
                "  y = Add(n, k) }") == "'k' is not made before the norm's gradient");
  CHECK(why_not("(float[2,3] y) { " + norm + "  y = Sub(n, s) }").empty());
  CHECK(why_not("(float[2,3] y) { n, k = ai.trainscope.LayerNormalizationGrad (d, x, w)"
                "  y = Add(k, x) }")
            .empty());
}

// Where norms stand before layers, each but the last has an addition behind its gradient; in BERT,
// where they stand behind the sums, matmuls and a bias read it too.
TEST_CASE("fuse_norm_grad_add: counts in the reference models") {
  const std::map<std::string, std::int64_t> counts{{"gpt2", 4}, {"bert", 0}, {"llama", 4}};
  for (const auto& [name, count] : counts) {
    CAPTURE(name);
    CompileOptions options;
    if (name == "gpt2") options.import.frozen = {"*.attn.mask"};
    const std::filesystem::path folder = TRAINSCOPE_SOURCE_DIR;
    const Stages all =
        build_stages(OnnxModel::read(folder / "tests/data/models" / name / "model.onnx"), options);
    CHECK(saved(all) == count);
    const std::vector<NearMiss>& misses = stage_named(all, "fuse_norm_grad_add").near_misses;
    for (const NearMiss& miss : misses) CHECK(contains(miss.reason, "has 4 readers"));
    CHECK(misses.empty() == (count > 0));
  }
}

}  // namespace trainscope::test
