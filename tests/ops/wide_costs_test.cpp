// FLOPs and bytes beyond 63 bits: the largest number, of one node and of a graph.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTwo22 = std::int64_t{1} << 22;

// Of an op with so many times the same input.
Cost cost(std::string_view op, const Shape& shape, std::size_t inputs) {
  static const OpTable ops = standard_ops();
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {"n"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = shape});
  const ValueId y = b(op, std::vector<ValueId>(inputs, x));
  const Node& node = graph.node(graph.value(y).producer);
  return cost_of(*node.op, *NodeArgs(graph, node));
}

}  // namespace

TEST_CASE("costs: 2^67 FLOPs of a matmul are the largest number") {
  const Cost of_matmul = cost("MatMul", {kTwo22, kTwo22}, 2);
  CHECK(of_matmul.flops == kMost);
  CHECK(of_matmul.bytes_read == 2 * 4 * kTwo22 * kTwo22);
}

TEST_CASE("costs: so are 2^63 FLOPs and 2^64 bytes of many inputs") {
  const Cost of_norm = cost("GlobalNorm", {kTwo22, 2 * kTwo22}, std::size_t{1} << 17);
  CHECK(of_norm.flops == kMost);
  CHECK(of_norm.bytes_read == kMost);
  // Without a rule of its own: all inputs and outputs.
  const Cost of_concat = cost("Sum", {kTwo22, 2 * kTwo22}, std::size_t{1} << 17);
  CHECK(of_concat.bytes_read == kMost);
}

}  // namespace trainscope::test
