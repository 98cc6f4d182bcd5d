// fuse_matmul_add: which additions the matmuls of the gradients take over, in place, that numbers
// stay, and why others stay.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/models/models.h"
#include "engine/onnx/plain_model.h"
#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kInputs =
    "(float[2,3,4] x0) => (float[2,3,4] y) <float[4] p = {0.5,-1,1.5,2}, float[4,4] w ="
    " {1,2,3,4,5,-6,7,8,9,1,2,-3,4,5,6,7}, float[4,4] v = {1,-2,3,4,0.5,6,-7,8,2,1,2,3,4,1,6,7},"
    " float[4,4] u = {3,-2,3,1,0.5,6,1,2,2,1,-2,3,4,1,0.5,7}, int64[2] flat = {6,4}, int64[3] deep"
    " = {2,3,4}>";

Fusion fusion() {
  return {.pass = "fuse_matmul_add",
          .fused = "MatMulAdd",
          .inputs = kInputs,
          .before = "x = Mul(x0, p)",
          .constants = {"flat", "deep"}};
}

std::int64_t saved(const Stages& stages) {
  const auto& counters = stage_named(stages, "fuse_matmul_add").counters;
  const auto found = counters.find("additions saved");
  return found == counters.end() ? 0 : found->second;
}

// A graph with ops of ours in it; of the backward phase all that is not an input.
Stage after_pass(std::string_view nodes) {
  const std::string header = R"(<ir_version: 8, opset_import: ["" : 17, "ai.trainscope" : 1]> g )";
  Graph own = graph(OnnxModel::parse_text(
      header + "(float[2,3] a, float[3,4] b, float[2,4] s, float[4] row, float[8] flat) => " +
      std::string(nodes)));
  for (NodeId id : own.order()) own.node(id).phase = Phase::kBackward;
  const TrainingOptions options;
  const PassContext context{.ops = op_table(), .options = options, .pass = {}};
  const auto pass = std::ranges::find(default_passes(), "fuse_matmul_add", &Pass::name);
  REQUIRE(pass != default_passes().end());
  return run_passes(std::move(own), {&*pass, 1}, context, {}).back();
}

std::string why_not(std::string_view nodes) {
  const Stage stage = after_pass(nodes);
  CHECK_FALSE(stage.changed);
  return stage.near_misses.empty() ? "" : stage.near_misses[0].reason;
}

constexpr std::string_view kMatmul = "m = ai.trainscope.BatchMatMul (a, b)";

// Additions saved, whether q, k and v are one matmul or three.
std::int64_t saved_in(const OnnxModel& model, CompileOptions options) {
  const std::int64_t merged = saved(build_stages(model, options));
  options.passes.disabled = {"merge_matmuls"};
  CHECK(saved(build_stages(model, options)) == merged);
  return merged;
}

std::int64_t saved_in_reference(const std::string& name) {
  CompileOptions options;
  if (name == "gpt2") options.import.frozen = {"*.attn.mask"};
  const std::filesystem::path folder = TRAINSCOPE_SOURCE_DIR;
  return saved_in(OnnxModel::read(folder / "tests/data/models" / name / "model.onnx"), options);
}

std::int64_t saved_in_built(const std::string& name, const ModelArguments& arguments) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  CompileOptions options;
  options.import.dims = {{"batch", 2}};
  if (name != "vit") options.import.dims.insert({"sequence", 8});
  return saved_in(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), options);
}

}  // namespace

TEST_CASE("fuse_matmul_add: what several matmuls and a residual add to a gradient") {
  const std::map<std::string_view, std::int64_t> spellings{
      {"q = MatMul(x, w)  k = MatMul(x, v)  a = Tanh(q)  b = Sin(k)  y = Mul(a, b)", 1},
      {"q = MatMul(x, w)  k = MatMul(x, v)  o = MatMul(x, u)  a = Tanh(q)  b = Sin(k)"
       "  c = Mul(a, b)  y = Mul(c, o)",
       2},
      {"q = MatMul(x, w)  a = Tanh(q)  k = MatMul(a, v)  y = Add(x, k)", 1},
      {"q = MatMul(x, w)  k = MatMul(x, v)  a = Mul(q, k)  y = Add(a, x)", 2},
      {"r = Reshape(x, flat)  q = MatMul(r, w)  k = Reshape(q, deep)  a = Tanh(k)  y = Add(x, a)",
       1},
      {"t = Transpose <perm = [1, 0]> (w)  q = MatMul(x, t)  a = Tanh(q)  y = Add(a, x)", 1}};
  for (const auto& [nodes, count] : spellings) {
    CAPTURE(nodes);
    CHECK(changes_no_result(fusion(), nodes));
    const Stages with = stages_of(fusion(), nodes);
    CHECK(saved(with) == count);
    const Stage& stage = stage_named(with, "fuse_matmul_add");
    const Stage& before = *(&stage - 1);
    CHECK(count_ops(stage.graph, "MatMulAdd") == count);
    CHECK(count_ops(stage.graph, "Add") == count_ops(before.graph, "Add") - count);
    CHECK(stage.near_misses.empty());
    CHECK_FALSE(changes(stage.graph, "fuse_matmul_add"));
  }
}

TEST_CASE("fuse_matmul_add: either operand, behind views, one after another") {
  const std::string matmul(kMatmul);
  const auto lines = [](std::string_view nodes) { return node_lines(after_pass(nodes).graph); };
  const std::string one = "backward y f32[2,4] = ts.MatMulAdd(a, b, s)\noutput y\n";
  CHECK(lines("(float[2,4] y) { " + matmul + "  y = Add(m, s) }") == one);
  CHECK(lines("(float[2,4] y) { " + matmul + "  y = Add(s, m) }") == one);
  const std::string viewed = lines("(float[8] y) <int64[1] all = {8}> { " + matmul +
                                   "  r = Reshape(m, all)  y = Add(flat, r) }");
  CHECK(contains(viewed, "= ts.MatMulAdd(a, b, "));
  CHECK_FALSE(contains(viewed, "= Add("));
  const std::string several =
      lines("(float[2,4] y) { " + matmul +
            "  k = ai.trainscope.BatchMatMul (a, b)  z = Add(m, k)  y = Add(s, z) }");
  CHECK_FALSE(contains(several, "= Add("));
}

TEST_CASE("fuse_matmul_add: in the other operand's bytes") {
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  const std::string text = text_of(
      fusion(), "q = MatMul(x, w)  k = MatMul(x, v)  a = Mul(q, k)  b = Tanh(a)  y = Add(b, x)");
  options.import.frozen = {"flat", "deep"};
  const std::unique_ptr<Compiled> step = compile(model(text), options);
  const Program& program = step->program;
  const auto buffer = [&program](ValueId v) { return program.place(v).buffer; };
  int sums = 0;
  for (NodeId id : program.graph.order()) {
    const Node& node = program.graph.node(id);
    if (node.op->name != "MatMulAdd") continue;
    ++sums;
    CHECK(buffer(node.inputs[2]) == buffer(node.outputs[0]));
  }
  CHECK(sums == 2);
}

// The sum is an operand too: its bytes are read while the matmul is written elsewhere.
TEST_CASE("fuse_matmul_add: of a residual around one matmul") {
  CHECK(changes_no_result(fusion(), "q = MatMul(x, w)  y = Add(q, x)"));
  CompileOptions options;
  options.import.frozen = {"flat", "deep"};
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  const std::unique_ptr<Compiled> step =
      compile(model(text_of(fusion(), "q = MatMul(x, w)  y = Add(q, x)")), options);
  int sums = 0;
  for (NodeId id : step->program.graph.order()) {
    const Node& node = step->program.graph.node(id);
    if (node.op->name != "MatMulAdd") continue;
    ++sums;
    CHECK(node.inputs[0] == node.inputs[2]);
    CHECK(step->program.place(node.inputs[2]).buffer !=
          step->program.place(node.outputs[0]).buffer);
  }
  CHECK(sums == 1);
}

TEST_CASE("fuse_matmul_add: what stays, and why") {
  const std::string matmul(kMatmul);
  CHECK(why_not("(float[2,4] y, float[2,4] z) { " + matmul + "  y = Add(m, s)  z = Exp(m) }") ==
        "'m' has 2 readers");
  CHECK(why_not("(float[2,4] m, float[2,4] y) { " + matmul + "  y = Add(m, s) }") ==
        "'m' is asked for");
  CHECK(why_not("(float[2,4] y) { " + matmul + "  y = Add(m, row) }") ==
        "'row' is f32[4], the matmul f32[2,4]");
  CHECK(why_not("(float[2,4] y) { " + matmul + "  t = Tanh(s)  y = Add(m, t) }") ==
        "'t' is not made before the matmul");
  const Stage viewed = after_pass("(float[8] y, float[8] z) <int64[1] all = {8}> { " + matmul +
                                  "  r = Reshape(m, all)  y = Add(flat, r)  z = Exp(r) }");
  CHECK(matched_in_near_misses(viewed) == "y r m");
  CHECK(why_not("(float[2,4] y) { " + matmul + "  y = Sub(m, s) }").empty());
  CHECK(why_not("(float[2,4] y) { m = ai.trainscope.BatchMatMul (a, b, row)  y = Add(m, s) }")
            .empty());
}

// Forward sums stay, and so do those of a model in inference.
TEST_CASE("fuse_matmul_add: nothing of the forward phase") {
  const Stages all = stages_of(fusion(),
                               "q = MatMul(x, w)  a = Tanh(q)  k = MatMul(a, v)"
                               "  y = Add(k, x)");
  int sums = 0;
  for (NodeId id : all.back().graph.order()) {
    const Node& node = all.back().graph.node(id);
    if (node.op->name != "MatMulAdd") continue;
    ++sums;
    CHECK(node.phase == Phase::kBackward);
  }
  CHECK(sums > 0);
}

TEST_CASE("fuse_matmul_add: in mixed precision the sum is rounded once") {
  CompileOptions options = options_of(fusion());
  options.training.precision = StepPrecision::kBF16;
  const Stages all =
      stages(text_of(fusion(), "q = MatMul(x, w)  k = MatMul(x, v)  a = Mul(q, k)  y = Add(a, x)"),
             options);
  CHECK(saved(all) >= 1);
  for (NodeId id : all.back().graph.order()) {
    const Node& node = all.back().graph.node(id);
    if (node.op->name != "MatMulAdd") continue;
    CHECK(all.back().graph.value(node.outputs[0]).type.dtype == DType::kBF16);
  }
}

// In each of two layers of BERT q, k, v and the feed-forward block have a residual beside them;
// where a norm stands before them, its gradient reads what k and v, and one of two in a gated MLP,
// add.
TEST_CASE("fuse_matmul_add: counts in the reference models and the builders' models") {
  const std::map<std::string, std::int64_t> exported{{"gpt2", 0}, {"bert", 8},  {"llama", 6},
                                                     {"mlp", 0},  {"lenet", 0}, {"resnet18", 0}};
  for (const auto& [name, count] : exported) {
    CAPTURE(name);
    CHECK(saved_in_reference(name) == count);
  }
  ModelArguments tokens{{"layers", 2}, {"heads", 2},   {"embedding", 16},
                        {"vocab", 13}, {"context", 8}, {"feed-forward", 32}};
  CHECK(saved_in_built("bert", tokens) == 8);
  tokens.insert({"kv-heads", 2});
  CHECK(saved_in_built("llama", tokens) == 6);
  const ModelArguments vit{{"layers", 2}, {"heads", 2},  {"embedding", 16}, {"feed-forward", 32},
                           {"patch", 4},  {"image", 16}, {"classes", 5}};
  CHECK(saved_in_built("vit", vit) == 4);
}

}  // namespace trainscope::test
