// Nodes that run again: which outputs they make, and that the graph stays one that its ops accept.
#include "engine/recompute/repeats.h"

#include <doctest/doctest.h>

#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {

TEST_CASE("repeats: a Split whose last or first part nobody reads again keeps their places") {
  static const OpTable ops = standard_ops();
  for (std::size_t part : {0U, 1U}) {
    for (bool with_sizes : {false, true}) {
      CAPTURE(part);
      CAPTURE(with_sizes);
      Graph graph;
      Builder b(graph, ops);
      b.set_provenance({.sources = {"n"}, .pass = "test"});
      const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {4, 6}});
      std::vector<ValueId> inputs{b("Relu", {x})};
      if (with_sizes) inputs.push_back(b.ints({1, 3}));
      const std::vector<ValueId> parts = b.multi("Split", std::move(inputs), 2);
      const ValueId other = b("Exp", {parts[1 - part]});
      const ValueId gate = b("Sigmoid", {parts[part]});
      const ValueId last = b("Mul", {gate, parts[part]});
      graph.outputs = {other, last};
      const std::vector<NodeId> order = graph.order();
      const NodeId split = graph.value(parts[0]).producer;
      const std::vector<Repeat> repeats{{.node = split, .before = graph.value(last).producer}};
      const RepeatedGraph result = with_repeats(graph, ops, repeated_order(graph, order, repeats));
      CHECK(verify(result.graph).empty());
      int again = 0;
      for (NodeId id : result.graph.order()) {
        const Node& node = result.graph.node(id);
        if (!node.name.ends_with("/again")) continue;
        ++again;
        CHECK(node.outputs.size() == 2);
        CHECK(node.outputs[part] != kNoValue);
        if (part == 0) CHECK(node.outputs[1] == kNoValue);
      }
      CHECK(again == 1);
    }
  }
}

}  // namespace trainscope::test
