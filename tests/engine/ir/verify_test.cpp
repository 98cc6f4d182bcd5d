// verify() finds every violation planted in a good graph; print() and the hash tell graphs apart.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/core/text.h"
#include "engine/ir/graph.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

// x, w -> a = Mul(x, w), b = Neg(a), y = Add(a, b).
Graph good() {
  return graph(
      "(float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {3, 4}>"
      "{ a = Mul(x, w)  b = Neg(a)  y = Add(a, b) }",
      {.frozen = {"k"}});
}

NodeId node_of(const Graph& graph, std::string_view output) {
  return graph.value(graph.find(output)).producer;
}

Value& value(Graph& graph, std::string_view name) { return graph.value(graph.find(name)); }

std::string problems(const Graph& graph) { return join(verify(graph), "\n"); }

void add_triple(Graph& graph, std::string_view name, ValueKind kind) {
  Value three;
  three.name = name;
  three.type = {.dtype = DType::kF32, .shape = {3}};
  three.kind = kind;
  graph.add_value(three);
}

struct Planted {
  const char* what;
  void (*plant)(Graph&);
  const char* finding;
};

constexpr Planted kPlanted[] = {
    {"a reader before its producer", [](Graph& g) { g.set_input(node_of(g, "a"), 0, g.find("b")); },
     "reads 'b' before it exists"},
    {"an erased value that is read", [](Graph& g) { value(g, "x").erased = true; },
     "reads 'x' before it exists"},
    {"a wrong type", [](Graph& g) { value(g, "b").type.shape = {3}; },
     "value 'b': type f32[3], the op gives f32[2]"},
    {"inputs that do not fit the op",
     [](Graph& g) {
       value(g, "w").type.shape = {3};
       value(g, "w").data.reset();
     },
     "(Mul): "},
    {"a use too many",
     [](Graph& g) {
       value(g, "b").uses.push_back({node_of(g, "a"), 0});
     },
     "value 'b': a listed use is not one"},
    {"a use missing", [](Graph& g) { value(g, "a").uses.pop_back(); },
     "value 'a': 1 uses listed, 2 exist"},
    {"a wrong producer", [](Graph& g) { value(g, "a").producer = node_of(g, "b"); },
     "value 'a': wrong producer"},
    {"a wrong output number", [](Graph& g) { value(g, "a").producer_output = 1; },
     "value 'a': wrong producer"},
    {"no provenance", [](Graph& g) { g.node(node_of(g, "a")).provenance.pass.clear(); },
     "no provenance"},
    {"an erased node in the order", [](Graph& g) { g.node(node_of(g, "y")).erased = true; },
     "erased, but in the order"},
    {"an order that leaves a node out",
     [](Graph& g) { g.node(node_of(g, "a")).next = node_of(g, "y"); },
     "the order visits 2 nodes, 3 live"},
    {"an order that goes round", [](Graph& g) { g.node(node_of(g, "y")).next = node_of(g, "a"); },
     "3 live"},
    {"two values of one name", [](Graph& g) { value(g, "k").name = "w"; },
     "its name is not its own"},
    {"a constant without elements", [](Graph& g) { value(g, "k").data.reset(); },
     "constant 'k': no data"},
    {"elements of another type",
     [](Graph& g) { value(g, "w").data = std::make_shared<const Tensor>(floats({1}, {1})); },
     "value 'w': data is f32[1], type f32[2]"},
    {"an output that does not exist", [](Graph& g) { g.outputs.push_back(kNoValue); },
     "graph output: a value that does not exist"},
    {"a node's result as input", [](Graph& g) { g.inputs.push_back(g.find("a")); },
     "input 'a': not an input"},
    {"an update of another type",
     [](Graph& g) {
       add_triple(g, "s", ValueKind::kState);
       g.updates.push_back({.state = g.find("s"), .value = g.find("a")});
     },
     "update of 's': types differ"},
    {"a gradient of another type",
     [](Graph& g) {
       add_triple(g, "p", ValueKind::kParameter);
       g.gradients.push_back({.of = g.find("p"), .gradient = g.find("a")});
     },
     "gradient of 'p': types differ"},
    {"an erased loss",
     [](Graph& g) {
       g.loss = g.find("b");
       value(g, "b").erased = true;
     },
     "loss: a value that does not exist"},
    {"an output changed in place",
     [](Graph& g) {
       g.is_output(g.outputs[0]);
       g.outputs[0] = g.find("a");
     },
     "value 'a': an entry of the outputs, updates or gradients was changed in place"},
    {"more outputs than the op has",
     [](Graph& g) {
       const NodeId id = node_of(g, "b");
       Value extra;
       extra.name = "extra";
       extra.type = g.value(g.find("b")).type;
       extra.producer = id;
       extra.producer_output = 1;
       const ValueId made = g.add_value(extra);
       g.node(id).outputs.push_back(made);
     },
     "2 outputs, the op gives 1"},
};

}  // namespace

TEST_CASE("verify: a good graph has no findings") { CHECK(problems(good()).empty()); }

TEST_CASE("verify: finds every planted violation") {
  for (const Planted& planted : kPlanted) {
    CAPTURE(std::string(planted.what));
    Graph g = good();
    planted.plant(g);
    CHECK_MESSAGE(contains(problems(g), planted.finding), problems(g));
  }
}

TEST_CASE("print: a line per input, initializer, node and end, in a fixed form") {
  Graph g = graph(
      "(float[2, 3] x) => (float[2, 1] y) <float[3] w = {1, 2, 3}, int64[1] axes = {1},"
      " float half = {0.5}, float[2] table = {1, 2}>"
      "{ a = Mul(x, w)  b = Mul(a, half)  y = ReduceSum <keepdims = 1> (b, axes) }",
      {.frozen = {"half", "table"}});
  g.loss = g.find("y");
  g.gradients.push_back({.of = g.find("x"), .gradient = g.find("a")});
  g.updates.push_back({.state = g.find("w"), .value = g.find("w")});
  g.node(node_of(g, "b")).phase = Phase::kBackward;
  g.node(node_of(g, "y")).phase = Phase::kUpdate;
  CHECK(print(g) ==
        "input x f32[2,3]\n"
        "parameter w f32[3]\n"
        "constant axes i64[1] {1}\n"
        "constant half f32[] {0.5}\n"
        "constant table f32[2]\n"
        "a f32[2,3] = Mul(x, w)\n"
        "backward b f32[2,3] = Mul(a, half)\n"
        "update y f32[2,1] = ReduceSum(b, axes) keepdims=1\n"
        "output y\n"
        "loss y\n"
        "gradient x = a\n"
        "next w = w\n");
  CHECK(print(g) == print(g));
}

TEST_CASE("print: names from files cannot break lines") {
  Graph g = good();
  g.rename(g.find("a"), "evil\nparameter \x1b[31m");
  CHECK_FALSE(contains(print(g), "evil\n"));
  CHECK_FALSE(contains(print(g), "\x1b"));
}

TEST_CASE("hash: equal graphs agree; op, wiring, type, attribute, name and order count") {
  const auto hash = [](std::string_view shape, std::string_view nodes) {
    return hash_of(graph(fmt::format("(float{0} x) => (float{0} y) {{ {1} }}", shape, nodes)));
  };
  const std::uint64_t base = hash("[2,2]", "a = Softmax <axis = 0> (x)  y = Exp(x)");
  CHECK(base == hash("[2,2]", "a = Softmax <axis = 0> (x)  y = Exp(x)"));
  CHECK(base != hash("[2,2]", "a = Softmax <axis = 1> (x)  y = Exp(x)"));
  CHECK(base != hash("[2,2]", "a = Softmax <axis = 0> (x)  y = Neg(x)"));
  CHECK(base != hash("[2,2]", "a = Softmax <axis = 0> (x)  y = Exp(a)"));
  CHECK(base != hash("[3,2]", "a = Softmax <axis = 0> (x)  y = Exp(x)"));
  CHECK(base != hash("[2,2]", "b = Softmax <axis = 0> (x)  y = Exp(x)"));
  CHECK(base != hash("[2,2]", "y = Exp(x)  a = Softmax <axis = 0> (x)"));
}

}  // namespace trainscope::test
