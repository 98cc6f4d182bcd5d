// Rematerialized nodes: which outputs they make, and that the graph stays one that its ops accept.
#include "engine/recompute/rematerialize.h"

#include <doctest/doctest.h>

#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {

TEST_CASE(
    "rematerialize: a Split whose last or first output nobody reads later keeps their places") {
  static const OpTable ops = standard_ops();
  for (std::size_t read : {0U, 1U}) {
    for (bool with_sizes : {false, true}) {
      CAPTURE(read);
      CAPTURE(with_sizes);
      Graph graph;
      Builder b(graph, ops);
      b.set_provenance({.sources = {"n"}, .pass = "test"});
      const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {4, 6}});
      std::vector<ValueId> inputs{b("Relu", {x})};
      if (with_sizes) inputs.push_back(b.ints({1, 3}));
      const std::vector<ValueId> slices = b.multi("Split", std::move(inputs), 2);
      const ValueId other = b("Exp", {slices[1 - read]});
      const ValueId gate = b("Sigmoid", {slices[read]});
      const ValueId last = b("Mul", {gate, slices[read]});
      graph.outputs = {other, last};
      const std::vector<NodeId> order = graph.order();
      const NodeId split = graph.value(slices[0]).producer;
      const std::vector<Rematerialization> second{
          {.node = split, .before = graph.value(last).producer}};
      const RematerializedGraph result =
          rematerialized_graph(graph, ops, rematerialized_order(graph, order, second));
      CHECK(verify(result.graph).empty());
      int rematerialized = 0;
      for (NodeId id : result.graph.order()) {
        const Node& node = result.graph.node(id);
        if (!node.name.ends_with("/rematerialized")) continue;
        ++rematerialized;
        CHECK(node.outputs.size() == 2);
        CHECK(node.outputs[read] != kNoValue);
        if (read == 0) CHECK(node.outputs[1] == kNoValue);
      }
      CHECK(rematerialized == 1);
    }
  }
}

}  // namespace trainscope::test
