// fuse_fake_quantize: pairs of QuantizeLinear and DequantizeLinear as they are exported, what stays
// and what is said about it, the gradient that the fused node has.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// x [2,4]; scales and zero points of it.
std::string pair_text(std::string_view nodes) {
  return fmt::format(
      "(float[2,4] x) => (float[2,4] y) <float[2,4] w = {{1,2,3,4,5,6,7,8}}> {{ "
      "s = Constant<value = float {{0.25}}>() t = Constant<value = float {{0.25}}>() "
      "other = Constant<value = float {{0.5}}>() "
      "c = Constant<value = float[4] {{0.25,0.5,1,2}}>() "
      "z = Constant<value = uint8 {{3}}>() i = Constant<value = int8 {{0}}>() "
      "k = Constant<value = int8[4] {{0,1,2,3}}>() {} }}",
      nodes);
}

Graph fused(std::string_view nodes) {
  return passed(graph(pair_text(nodes)), {"fuse_fake_quantize", "dead_code"});
}

// How many FakeQuantize, QuantizeLinear and DequantizeLinear the pass leaves.
std::string counts(std::string_view nodes) {
  const Graph result = fused(nodes);
  return fmt::format("{} {} {}", count_ops(result, "FakeQuantize"),
                     count_ops(result, "QuantizeLinear"), count_ops(result, "DequantizeLinear"));
}

Tensors results(std::string_view nodes, bool fuse) {
  Graph plain = graph(pair_text(nodes));
  const Tensors inputs = random_inputs(plain, 1);
  if (fuse) plain = passed(std::move(plain), {"fuse_fake_quantize"});
  return outputs_of(plain, inputs);
}

}  // namespace

TEST_CASE(
    "fuse_fake_quantize: pairs as exporters write them become one node with the same result") {
  for (std::string_view nodes : {
           "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)",
           "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, t, z)",  // an equal constant
           "q = QuantizeLinear(x, s) y = DequantizeLinear(q, s)",
           "q = QuantizeLinear(x, s, i) y = DequantizeLinear(q, s, i)",
           "q = QuantizeLinear<axis = 1>(x, c, k) y = DequantizeLinear<axis = 1>(q, c, k)",
           "q = QuantizeLinear<axis = -1>(x, c, k) y = DequantizeLinear<axis = -1>(q, c, k)",
       }) {
    CAPTURE(nodes);
    CHECK(counts(nodes) == "1 0 0");
    CHECK(difference(results(nodes, true), results(nodes, false)) == 0.0);
    CHECK_FALSE(changes(fused(nodes), "fuse_fake_quantize"));
  }
}

TEST_CASE("fuse_fake_quantize: the range is that of the integers") {
  const std::string lines =
      node_lines(fused("q = QuantizeLinear(x, s, i) y = DequantizeLinear(q, s, i)"));
  CHECK(contains(lines, "least=-128"));
  CHECK(contains(lines, "greatest=127"));
}

TEST_CASE("fuse_fake_quantize: a quantized tensor that others read is quantized for them") {
  CHECK(counts("q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) e = Cast<to = 1>(q) "
               "y = Add(d, e)") == "1 1 0");
}

TEST_CASE("fuse_fake_quantize: other pairs stay") {
  CHECK(counts("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, other, z)") == "0 1 1");
  CHECK(counts("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s)") == "0 1 1");
  CHECK(counts("q = Cast<to = 2>(x) y = DequantizeLinear(q, s, z)") == "0 0 1");
  CompileOptions options;
  options.training.mode = GraphMode::kInference;
  const Stages all =
      stages(pair_text("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, other, z)"), options);
  CHECK(matched_in_near_misses(stage_named(all, "fuse_fake_quantize")) == "y q");
}

TEST_CASE("fuse_fake_quantize: gradients pass inside the range and stop outside") {
  // x * w is quantized in steps of 0.25 to [-0.75, 63]: w's gradient is x there, else 0.
  CompileOptions options;
  options.training.mode = GraphMode::kGradients;
  options.training.loss = {.kind = LossKind::kOutput, .output = "y"};
  const Stages all = stages(
      "(float[3] x) => (float y) <float[3] w = {1,2,3}> { "
      "s = Constant<value = float {0.25}>() z = Constant<value = uint8 {3}>() "
      "p = Mul(x, w) q = QuantizeLinear(p, s, z) d = DequantizeLinear(q, s, z) "
      "y = ReduceSum<keepdims = 0>(d) }",
      options);
  const Graph& step = all.back().graph;
  Tensors inputs = random_inputs(step, 1);
  inputs.at("x") = floats({3}, {-5.0F, 0.3F, 100.0F});
  inputs.at("w") = floats({3}, {1.0F, 2.0F, 3.0F});
  const Tensors results = results_of(step, inputs);
  CHECK(difference(results.at("d w"), floats({3}, {0.0F, 0.3F, 0.0F})) == 0.0);
}

}  // namespace trainscope::test
