// Sequences and optional values are lists of names while a model is read, and gone afterwards.
#include <doctest/doctest.h>

#include <string>

#include "engine/ir/graph.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

// The graph with everything known that can be.
Graph built(std::string_view inputs, std::string_view nodes) {
  const Evaluate evaluate = known_values();
  return to_graph(read_proto(text_model(inputs, nodes, 28)), all_ops(), {.evaluate = &evaluate});
}

Shape shape_of_y(const Graph& graph) { return graph.value(graph.find("y")).type.shape; }

bool has_sequences(const Graph& graph) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->name.find("Sequence") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("sequences: pieces of a tensor") {
  const std::string_view inputs = "float[5,3] x, int64 at = {-1}, int64 two = {2}";
  const Graph last = built(inputs, "s = SplitToSequence(x, two) y = SequenceAt(s, at)");
  CHECK(shape_of_y(last) == Shape{1, 3});
  CHECK_FALSE(has_sequences(last));
  const Graph rows = built(inputs, "s = SplitToSequence<keepdims = 0>(x) y = SequenceAt(s, at)");
  CHECK(shape_of_y(rows) == Shape{3});
  const Graph again =
      built(inputs, "s = SplitToSequence(x, two) y = ConcatFromSequence<axis = 0>(s)");
  CHECK(shape_of_y(again) == Shape{5, 3});
  const Graph stacked = built(inputs,
                              "s = SplitToSequence<keepdims = 0>(x) "
                              "y = ConcatFromSequence<axis = 1, new_axis = 1>(s)");
  CHECK(shape_of_y(stacked) == Shape{3, 5});
}

TEST_CASE("sequences: made, changed and counted") {
  const Graph graph = built("float[2] a, float[3] b, int64 first = {0}",
                            "s = SequenceConstruct(a, b) t = SequenceInsert(s, b, first) "
                            "u = Identity(t) v = SequenceErase(u) n = SequenceLength(v) "
                            "e = SequenceAt(v, first) c = Cast<to = 1>(n) y = Add(e, c)");
  CHECK(shape_of_y(graph) == Shape{3});
  CHECK_FALSE(has_sequences(graph));
  const SharedTensor length = graph.value(graph.find("n")).data;
  REQUIRE(length != nullptr);
  CHECK(length->values<std::int64_t>()[0] == 2);
}

TEST_CASE("sequences: optional values that are there") {
  const Graph graph = built("float[2] a",
                            "o = Optional(a) h = OptionalHasElement(o) e = OptionalGetElement(o) "
                            "c = Cast<to = 1>(h) y = Mul(e, c)");
  const SharedTensor there = graph.value(graph.find("h")).data;
  REQUIRE(there != nullptr);
  CHECK(there->dtype() == DType::kBool);
  CHECK(there->values<bool>()[0]);
}

TEST_CASE("sequences: what cannot be resolved is refused") {
  constexpr RefusedText kCases[] = {
      {"float[4] x, int64 at = {4}", "s = SplitToSequence(x) y = SequenceAt(s, at)",
       "position 4 is outside a sequence of 4", 28},
      {"float[4] x, int64 at = {-5}", "s = SplitToSequence(x) y = SequenceAt(s, at)",
       "position -5 is outside a sequence of 4", 28},
      {"float[4] x, int64 at", "s = SplitToSequence(x) y = SequenceAt(s, at)",
       "input 1 must be known before the run", 28},
      {"float[4] x, int64 at = {0}", "y = SequenceAt(x, at)", "input 0 is not a sequence", 28},
      {"float[4] x, int64 of = {0}", "s = SplitToSequence(x, of) y = ConcatFromSequence<axis=0>(s)",
       "pieces of 0 elements", 28},
      {"float[1000000000] x", "s = SplitToSequence(x) y = SequenceLength(s)",
       "a sequence of more than 100000 elements", 28},
      {"float[4] x", "s = SequenceConstruct(x) t = SequenceErase(s) y = SequenceErase(t)",
       "position 0 is outside a sequence of 0", 28},
      {"float[4] x", "s = SequenceConstruct(x) y = Relu(s)", "reads 's'", 28},
  };
  check_refused(kCases);
}

}  // namespace trainscope::test
