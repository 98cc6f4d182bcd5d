// Rewriter: readers move over, outputs keep their names, sources are merged.
#include "engine/ir/rewriter.h"

#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

NodeId node_of(const Graph& graph, std::string_view output) {
  return graph.value(graph.find(output)).producer;
}

std::vector<std::string> sources_of(const Graph& graph, std::string_view output) {
  return graph.node(node_of(graph, output)).provenance.sources.list();
}

}  // namespace

TEST_CASE("rewriter: a replaced output keeps its name, the new value takes it") {
  Graph g = graph("(float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }");
  Rewriter rewriter(g, op_table(), "test", nullptr);
  CHECK_FALSE(rewriter.changed());
  const NodeId neg = node_of(g, "y");
  const ValueId made = rewriter.before(neg)("Abs", {g.find("a")});
  rewriter.replace_node(neg, {made});
  CHECK(rewriter.changed());
  CHECK(g.find("y") == made);
  CHECK(node_lines(g) == "a f32[2] = Relu(x)\ny f32[2] = Abs(a)\noutput y\n");
  CHECK(verify(g).empty());
}

TEST_CASE("rewriter: nodes, outputs, loss, updates and gradients read the new value") {
  Graph g = graph(
      "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}>"
      "{ a = Mul(x, w)  y = Neg(a)  z = Exp(a) }");
  g.loss = g.find("a");
  g.updates.push_back({.state = g.find("w"), .value = g.find("a")});
  g.gradients.push_back({.of = g.find("w"), .gradient = g.find("a")});
  Rewriter rewriter(g, op_table(), "test", nullptr);
  const ValueId made = rewriter.before(node_of(g, "a"))("Add", {g.find("x"), g.find("w")});
  rewriter.replace(g.find("a"), made);
  CHECK(g.loss == made);
  CHECK(g.updates[0].value == made);
  CHECK(g.gradients[0].gradient == made);
  CHECK(g.value(made).uses.size() == 2);
  CHECK(g.value(made).name == "a");
  CHECK(verify(g).empty());
}

TEST_CASE("rewriter: an output may only become the result of a node that is no output itself") {
  Graph g =
      graph("(float[2] x) => (float[2] y, float[2] z) { a = Relu(x)  y = Neg(a)  z = Exp(y) }");
  const Rewriter rewriter(g, op_table(), "test", nullptr);
  CHECK(rewriter.can_replace(g.find("a"), g.find("x")));        // a is no output
  CHECK_FALSE(rewriter.can_replace(g.find("y"), g.find("x")));  // an input cannot be renamed
  CHECK_FALSE(rewriter.can_replace(g.find("z"), g.find("y")));  // one value, two names
  CHECK(rewriter.can_replace(g.find("y"), g.find("a")));
}

TEST_CASE("rewriter: new nodes carry phase and sources of the node that they stand for") {
  Graph g = graph("(float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }");
  g.node(node_of(g, "y")).phase = Phase::kBackward;
  const std::string source = sources_of(g, "y").front();
  Rewriter rewriter(g, op_table(), "test", nullptr);
  rewriter.replace_node(node_of(g, "y"), {rewriter.before(node_of(g, "y"))("Abs", {g.find("a")})});
  const Node& node = g.node(node_of(g, "y"));
  CHECK(node.phase == Phase::kBackward);
  CHECK(node.provenance.pass == "test");
  CHECK(node.provenance.sources == SourceNames{source});
  const ValueId last = rewriter.at_end(Phase::kUpdate)("Exp", {g.find("y")});
  CHECK(g.node(g.last()).outputs[0] == last);
  CHECK(g.node(g.last()).phase == Phase::kUpdate);
  CHECK(g.node(g.last()).provenance.sources.empty());
}

TEST_CASE("rewriter: a replacement takes over the sources, each once and in order") {
  Graph g = graph("(float[2] x) => (float[2] z) { a = Relu(x)  b = Relu(x)  z = Add(a, b) }");
  const std::string first = sources_of(g, "a").front();
  const std::string second = sources_of(g, "b").front();
  Rewriter rewriter(g, op_table(), "test", nullptr);
  rewriter.replace(g.find("b"), g.find("a"));
  CHECK(sources_of(g, "a") == std::vector<std::string>{first, second});
  rewriter.replace(g.find("b"), g.find("a"));
  CHECK(sources_of(g, "a") == std::vector<std::string>{first, second});
}

TEST_CASE("rewriter: make_constant moves the readers of a known value to a constant") {
  Graph g = graph("(float[2, 3] x) => (int64[2] y) { s = Shape(x)  y = Add(s, s) }");
  REQUIRE(g.value(g.find("s")).data != nullptr);
  Rewriter rewriter(g, op_table(), "test", nullptr);
  rewriter.make_constant(g.find("s"));
  CHECK(g.value(g.find("s")).uses.empty());
  CHECK(contains(print(g), "constant s/known i64[2] {2,3}\n"));
  CHECK(contains(print(g), "y i64[2] = Add(s/known, s/known)"));
  CHECK(verify(g).empty());
}

TEST_CASE("rewriter: erased values and nodes are gone from lists and names") {
  Graph g = graph("(float[2] x, float[2] unread) => (float[2] y) { a = Exp(x)  y = Relu(x) }");
  Rewriter rewriter(g, op_table(), "test", nullptr);
  rewriter.erase(node_of(g, "a"));
  rewriter.erase_value(g.find("unread"));
  CHECK(g.inputs == std::vector<ValueId>{g.find("x")});
  CHECK(print(g) == "input x f32[2]\ny f32[2] = Relu(x)\noutput y\n");
  CHECK(verify(g).empty());
}

}  // namespace trainscope::test
