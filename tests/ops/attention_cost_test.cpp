// Attention: the FLOPs that its rows claim, also where there are more scores than a number holds.
#include <doctest/doctest.h>

#include <limits>
#include <utility>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {
namespace {

std::int64_t flops(const Shape& q, Attributes attributes) {
  static const OpTable ops = standard_ops();
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {"n"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = q});
  const ValueId step = b.input("step", {.dtype = DType::kI64, .shape = {}});
  const ValueId y = b.multi("Attention", {x, x, x, kNoValue, step}, 2, std::move(attributes))[0];
  const Node& node = graph.node(graph.value(y).producer);
  const NodeArgs args(graph, node);
  return node.op->cost(*args).flops;
}

}  // namespace

TEST_CASE("attention: FLOPs of two matmuls and a softmax, half of them if causal") {
  const Attributes causal{{"causal", std::int64_t{1}}};
  CHECK(flops({2, 6, 3, 4}, {}) == 2 * 3 * 6 * 6 * (2 * 2 * 4 + 12));
  CHECK(flops({2, 6, 3, 4}, causal) == 3 * 6 * 6 * (2 * 2 * 4 + 12));
}

TEST_CASE("attention: a random number for each weight that may drop out") {
  CHECK(flops({2, 6, 3, 4}, {{"ratio", 0.1}}) == 2 * 3 * 6 * 6 * (2 * 2 * 4 + 12 + 20));
}

TEST_CASE("attention: FLOPs beyond 63 bits are the largest number") {
  CHECK(flops({1, std::int64_t{1} << 40, 1, 1}, {}) == std::numeric_limits<std::int64_t>::max());
}

}  // namespace trainscope::test
