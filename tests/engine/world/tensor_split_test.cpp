// Tensor parallelism: who holds what of each model, and how often the devices sum.
#include "engine/world/tensor_split.h"

#include <doctest/doctest.h>

#include <map>

#include "engine/world/collective_ops.h"
#include "engine/world/place.h"
#include "engine/world/zero.h"
#include "tests/engine/world/world_steps.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

struct Split {
  Graph graph;
  std::vector<std::int64_t> workspaces;
};

Split split(const Compiled& step, std::int64_t devices) {
  Split split{.graph = step.program.graph, .workspaces = workspaces_of(step.program)};
  split_tensors(split.graph, op_table(), devices, split.workspaces);
  return split;
}

Shape shape_of(const Graph& graph, std::string_view name) {
  const ValueId v = graph.find(name);
  REQUIRE(v != kNoValue);
  return graph.value(v).type.shape;
}

// "float[3] a = {1,1,1}"
std::string weight(std::string text, int elements) {
  text += " = {1";
  for (int i = 1; i < elements; ++i) text += ",1";
  return text + "}";
}

std::map<Phase, int> sums(const Graph& graph, std::int64_t least_elements) {
  std::map<Phase, int> count;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op != &all_reduce_op()) continue;
    if (graph.value(node.outputs[0]).type.elements() >= least_elements) ++count[node.phase];
  }
  return count;
}

}  // namespace

TEST_CASE("tensor parallel: a GPT is cut as Megatron-LM cuts it") {
  const auto step = gpt_step(2);  // width 32, 4 heads, 64 tokens
  const Graph graph = split(*step, 4).graph;
  CHECK(shape_of(graph, "wte.weight") == Shape{16, 32});
  CHECK(shape_of(graph, "wpe.weight") == Shape{16, 32});  // whole
  CHECK(shape_of(graph, "h.1.attn.c_attn.weight") == Shape{32, 24});
  CHECK(shape_of(graph, "h.1.attn.c_attn.bias") == Shape{24});
  CHECK(shape_of(graph, "h.1.attn.c_proj.weight") == Shape{8, 32});
  CHECK(shape_of(graph, "h.1.attn.c_proj.bias") == Shape{32});
  CHECK(shape_of(graph, "h.1.mlp.c_fc.weight") == Shape{32, 32});
  CHECK(shape_of(graph, "h.1.mlp.c_proj.weight") == Shape{32, 32});
  CHECK(shape_of(graph, "h.1.ln_1.weight") == Shape{32});
  CHECK(shape_of(graph, "logits") == Shape{2, 8, 16});
  CHECK(shape_of(graph, "ai.trainscope.adamw.v/h.0.mlp.c_fc.weight") == Shape{32, 32});
  // Two sums a block each way; the table of tokens, and before it the head.
  const std::int64_t activation = 2 * 8 * 32;
  CHECK(sums(graph, activation) ==
        std::map<Phase, int>{{Phase::kForward, 5}, {Phase::kBackward, 5}});
}

TEST_CASE("tensor parallel: every model stays a graph, and sums as often as it must") {
  const ModelArguments bert = {{"layers", std::int64_t{2}},        {"heads", std::int64_t{4}},
                               {"embedding", std::int64_t{32}},    {"vocab", std::int64_t{64}},
                               {"feed-forward", std::int64_t{64}}, {"context", std::int64_t{16}}};
  ModelArguments llama = bert;
  llama.emplace("kv-heads", std::int64_t{2});
  const StepSizes sizes{.batch = 2, .sequence = 8};
  const std::int64_t activation = 2 * 8 * 32;
  for (const char* name : {"bert", "llama"}) {
    CAPTURE(name);
    const auto step = compiled_step(name, name[0] == 'b' ? bert : llama, sizes);
    const Graph graph = split(*step, 2).graph;
    CHECK(verify(graph) == std::vector<std::string>{});
    CHECK(sums(graph, activation) ==
          std::map<Phase, int>{{Phase::kForward, 5}, {Phase::kBackward, 5}});
  }
  const auto dropout = compiled_step("gpt2",
                                     {{"layers", std::int64_t{1}},
                                      {"heads", std::int64_t{4}},
                                      {"embedding", std::int64_t{32}},
                                      {"vocab", std::int64_t{61}},
                                      {"context", std::int64_t{16}},
                                      {"dropout", 0.1}},
                                     {.batch = 2, .sequence = 8, .micro_batches = 3});
  const Graph padded = split(*dropout, 4).graph;
  CHECK(shape_of(padded, "wte.weight") == Shape{16, 32});  // 61 tokens on 4 devices
  CHECK(shape_of(padded, "ai.trainscope.accumulated/wte.weight") == Shape{16, 32});
}

TEST_CASE("tensor parallel: what cannot be cut stays whole") {
  // The norm needs whole rows, so the matmul before it is not cut; the head is.
  const Graph graph = [] {
    const OnnxModel each =
        model("(float[4,8] x) => (float[4,6] logits) <" + weight("float[8,12] a", 96) + ", " +
              weight("float[12] scale", 12) + ", " + weight("float[12,6] b", 72) +
              "> { h = MatMul(x, a)  n = LayerNormalization<axis = -1>(h, scale)  "
              "logits = MatMul(n, b) }");
    const auto step = compile(each, {});
    return split(*step, 2).graph;
  }();
  CHECK(shape_of(graph, "a") == Shape{8, 12});
  CHECK(shape_of(graph, "b") == Shape{12, 3});
  CHECK(shape_of(graph, "logits") == Shape{4, 3});
}

TEST_CASE("tensor parallel: attention with a bias for each head stays whole") {
  const auto shard_with = [](const std::string& bias) {
    const OnnxModel each =
        model("(float[2,6,16] x) => (float[2,6,8] logits) <" + weight("float[16,16] a", 256) +
              ", " + weight("float[16,8] b", 128) + ", " + bias +
              ", int64[4] heads = {2,6,4,4}, int64[3] flat = {2,6,16}> { c = MatMul(x, a)"
              "  d = Reshape(c, heads)  q = Transpose<perm = [0,2,1,3]>(d)"
              "  k = Transpose<perm = [0,2,3,1]>(d)  r = MatMul(q, k)  m = Add(r, bias)"
              "  w = Softmax<axis = -1>(m)  h = MatMul(w, q)  t = Transpose<perm = [0,2,1,3]>(h)"
              "  o = Reshape(t, flat)  logits = MatMul(o, b) }");
    CompileOptions options;
    options.import.frozen = {"bias"};
    const auto step = compile(each, options);
    CHECK(count_ops(step->program.graph, "Attention") == 1);
    const Graph graph = split(*step, 2).graph;
    CHECK(verify(graph) == std::vector<std::string>{});
    return shape_of(graph, "a");
  };
  CHECK(shard_with(weight("float[4,1,6] bias", 24)) == Shape{16, 16});
  CHECK(shard_with(weight("float[1,4,1,6] bias", 24)) == Shape{16, 16});
  CHECK(shard_with(weight("float[1,6,6] bias", 36)) == Shape{16, 8});
  CHECK(shard_with(weight("float[6] bias", 6)) == Shape{16, 8});
}

TEST_CASE("tensor parallel: heads that do not divide, and graphs without matmuls, are refused") {
  const auto step = gpt_step(1);
  const std::optional<Error> heads = error_of([&] { split(*step, 3); });
  REQUIRE(heads.has_value());
  CHECK(heads->code() == ErrorCode::kUsage);
  CHECK(contains(heads->message(), "does not divide the 4 heads"));
  // Queries, keys and values are one axis of 12 there.
  CHECK(contains(refusal_of([&] { split(*step, 8); }), "does not divide the 4 heads"));
  const std::optional<Error> many = error_of([&] { split(*mlp_step(), 1024); });
  REQUIRE(many.has_value());
  CHECK(many->code() == ErrorCode::kUsage);
  CHECK(contains(many->message(), "--tensor-parallel 1024 is more than the 64 elements"));
  const OnnxModel plain = model("(float[4,3] x) => (float[4,3] logits) <" +
                                weight("float[3] a", 3) + "> { logits = Mul(x, a) }");
  const auto nothing = compile(plain, {});
  CHECK(contains(refusal_of([&] { split(*nothing, 2); }), "no matmul"));
}

// 16 -> 64 -> 32 -> 8: columns, rows, columns. Parameters, gradients and states by hand.
TEST_CASE("tensor parallel: the shards of an MLP computed by hand") {
  const auto step = mlp_step();
  const DeviceShard shard = planned(*step, {.world = 4, .tensor = 4}).device();
  const std::int64_t elements = 16 * 16 + 16 + 16 * 32 + 32 + 32 * 2 + 2;
  CHECK(shard.parameter_bytes == 4 * elements);
  CHECK(shard.gradient_bytes == 4 * elements);
  CHECK(shard.state_bytes == 8 * elements);
  // Sums of [2, 32] forward (second layer) and backward (third layer's input), and of the loss,
  // its two logarithms and the count.
  const double sent = planned(*step, {.world = 4, .tensor = 4}).sent_bytes;
  CHECK(sent == doctest::Approx(1.5 * 4 * (2 * 2 * 32 + 1 + 2 + 1)));
}

TEST_CASE("tensor parallel: more devices, less memory; with ZeRO still less") {
  const auto step = gpt_step(2);
  std::int64_t before = step->program.arena().bytes;
  for (std::int64_t devices : {2, 4}) {
    const std::int64_t peak =
        planned(*step, {.world = devices, .tensor = devices}).device().peak_bytes;
    CHECK(peak < before);
    const Layout both{.world = 8 * devices, .tensor = devices, .zero = 3};
    CHECK(planned(*step, both).device().peak_bytes < peak);
    before = peak;
  }
}

}  // namespace trainscope::test
