// If, Loop and Scan as the importer reads them: closed bodies, what is refused, what an exported
// model keeps.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/core/file.h"
#include "engine/exec/reference.h"
#include "engine/ir/graph.h"
#include "engine/onnx/export.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

Graph built(std::string_view inputs, std::string_view nodes) {
  const Evaluate evaluate = known_values();
  return to_graph(read_proto(text_model(inputs, nodes)), all_ops(), {.evaluate = &evaluate});
}

int loops_of(const Graph& graph) {
  int loops = 0;
  for (const NodeId id : graph.order()) loops += graph.node(id).op->name == "Loop" ? 1 : 0;
  return loops;
}

constexpr const char* kCounted =
    "y, all = Loop<body = b (int64 i, bool c, float[2] h) => (bool d, float[2] n, float[2] s) { d "
    "= "
    "Identity(c) n = Mul(h, w) s = Identity(n) }>(n, , x)";

}  // namespace

TEST_CASE("control flow: a body is closed, what it reads from around it is an input of the node") {
  const Graph graph = built("float[2] x, float[2] w, int64 n={7}", kCounted);
  REQUIRE(loops_of(graph) == 1);
  CHECK(verify(graph).empty());
  const Node& loop = graph.node(graph.find_node("Loop_0/Loop"));
  CHECK(loop.attributes.integer("max_trips", 0) == 7);
  CHECK(loop.inputs.size() == loop.attributes.graph("body")->inputs.size());
  CHECK(loop.inputs.back() == graph.find("w"));
  CHECK(graph.value(graph.find("all")).type.shape == Shape{7, 2});
}

TEST_CASE("control flow: a known branch is written out, one of the data is two loops") {
  constexpr const char* kIf =
      "y = If<then_branch = t () => (float[2] p) { q = Neg(x) p = Exp(q) }, else_branch = e () => "
      "(float[2] p) { p = Identity(x) }>(c)";
  const Graph known = built("float[2] x, bool c={1}", kIf);
  CHECK(loops_of(known) == 0);
  CHECK(known.find_node("If_0/Exp_1") != kNoNode);
  CHECK(loops_of(built("float[2] x, bool c", kIf)) == 2);
}

TEST_CASE("control flow: very many trips of nothing cost the importer nothing") {
  const ResourceWatch watch;
  const Graph graph =
      built("float[2] x={1,2}, int64 n={1099511627776}",
            "y = Loop<body = b (int64 i, bool c, float[2] h) => (bool d, float[2] k) { "
            "d = Identity(c) k = Identity(h) }>(n, , x)");
  CHECK(watch.problem() == "");
  CHECK(loops_of(graph) == 1);
}

TEST_CASE("control flow: a scan of opset 8 runs for each example of a batch") {
  onnx::ModelProto model = text_model(
      "float[2,1] h, float[2,3,1] x, float[2,3,1] z",
      "y, all = Scan<num_scan_inputs = 2, directions = [0, 1], body = b (float[1] p, float[1] s, "
      "float[1] t) => (float[1] n, float[1] o) { u = Mul(p, s) n = Add(u, t) o = Neg(n) }>(h, x, "
      "z)",
      8);
  auto& inputs = *model.mutable_graph()->mutable_node(0)->mutable_input();
  *inputs.Add() = "";  // the lengths, which come first
  for (int i = inputs.size() - 1; i > 0; --i) inputs.SwapElements(i, i - 1);
  const Evaluate evaluate = known_values();
  const Graph graph = to_graph(read_proto(model), all_ops(), {.evaluate = &evaluate});
  CHECK(verify(graph).empty());
  CHECK(loops_of(graph) == 1);
  const std::vector<float> h = {1, -1};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<float> z = {0.5, 1, 2, -1, 0, 3};
  const ReferenceValues values = reference_run(graph,
                                               {{"h", Tensor::of<float>(Shape{2, 1}, h)},
                                                {"x", Tensor::of<float>(Shape{2, 3, 1}, x)},
                                                {"z", Tensor::of<float>(Shape{2, 3, 1}, z)}},
                                               evaluate);
  for (std::size_t example = 0; example < 2; ++example) {
    float state = h[example];
    for (std::size_t step = 0; step < 3; ++step) {
      state = state * x[3 * example + step] + z[3 * example + 2 - step];
      CHECK(values.at("all").values<float>()[3 * example + step] == doctest::Approx(-state));
    }
    CHECK(values.at("y").values<float>()[example] == doctest::Approx(state));
  }
  *inputs.Mutable(0) = "h";
  check_refused("lengths", bytes_of(model), "lengths of sequences are not supported");
}

const RefusedText kRefused[] = {
    {"float[2] x, int64 n",
     "y = Loop<body = b (int64 i, bool c, float[2] h) => (bool d, float[2] k) { d = Identity(c) k "
     "= "
     "Neg(h) }>(n, , x)",
     "--max-trips N"},
    {"float[2] x, int64 n={5}",
     "y = Loop<body = b (int64 i, bool c, float[2] h) => (bool d, float[4] k) { d = Identity(c) k "
     "= "
     "Concat<axis = 0>(h, h) }>(n, , x)",
     "the shape of 'h' changes from trip to trip"},
    {"float[2] x, bool c, int64 n={5}",
     "k, y = Loop<body = b (int64 i, bool e, float[2] h) => (bool d, float[2] m, float[2] s) { d = "
     "Identity(e) m = Neg(h) s = Identity(m) }>(n, c, x)",
     "the length of 'y' depends on the data"},
    {"float[2] x, bool c",
     "y = If<then_branch = t () => (float[2] p) { p = Exp(x) }, else_branch = e () => (float[4] p) "
     "{ p "
     "= Concat<axis = 0>(x, x) }>(c)",
     "output 0 is f32[4] in one branch and f32[2] in the other"},
    {"float[2] x, int64 n={5}",
     "y = Loop<body = b (int64 i, bool c, float[2] h) => (bool d, float[2] k) { d = Identity(c) k "
     "= "
     "Dropout(h) }>(n, , x)",
     "where dropout, random numbers and norms of the batch are not supported"},
};

TEST_CASE("control flow: what cannot be known before the run is refused by name") {
  check_refused(kRefused);
}

TEST_CASE("control flow: an exported model keeps what only bodies read") {
  ScratchFolder folder;
  const onnx::ModelProto model = text_model(
      "float[2] x, float[2] w={1,2}, int64 n={3}",
      "v = Exp(w) u = Dropout(v) y = Loop<body = b (int64 i, bool c, float[2] h) => (bool "
      "d, float[2] k) { d = Identity(c) k = Mul(h, u) }>(n, , x)");
  export_inference(read_proto(model), folder / "out.onnx", {});
  onnx::ModelProto exported;
  REQUIRE(exported.ParseFromString(read_file(folder / "out.onnx", 1 << 20)));
  CHECK(loops_of(to_graph(read_proto(exported), all_ops())) == 1);
  CHECK(exported.graph().node(0).op_type() == "Exp");
  CHECK(exported.graph().node(1).op_type() == "Identity");
}

}  // namespace trainscope::test
