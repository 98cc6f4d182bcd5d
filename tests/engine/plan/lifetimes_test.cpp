// Lifetimes: which values share bytes, how long they live, which updates need a copy.
#include "engine/plan/lifetimes.h"

#include <doctest/doctest.h>

#include "memplan/bounds.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

struct Live {
  Graph graph;
  Lifetimes lifetimes;

  explicit Live(Graph g, const LowerOptions& options = {}) : graph(std::move(g)) {
    const std::vector<NodeId> order = graph.order();
    lifetimes = find_lifetimes(graph, order, options);
  }
  explicit Live(std::string_view text, const LowerOptions& options = {})
      : Live(test::graph(text), options) {}

  std::int32_t buffer(std::string_view name) const {
    return lifetimes.buffer_of[static_cast<std::size_t>(graph.find(name))];
  }
  bool share(std::string_view a, std::string_view b) const { return buffer(a) == buffer(b); }
  // "[first, last]" instruction of the value's bytes.
  std::string life(std::string_view name) const {
    const Lifetimes::Buffer& b = lifetimes.buffers[static_cast<std::size_t>(buffer(name))];
    return "[" + std::to_string(b.first) + ", " + std::to_string(b.last) + "]";
  }
};

// w is a state that becomes `value` after each step.
Graph updating(std::string_view nodes, std::string_view value) {
  Graph g =
      graph("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> {" + std::string(nodes) + "}");
  g.updates.push_back({.state = g.find("w"), .value = g.find(value)});
  return g;
}

}  // namespace

TEST_CASE("lifetimes: bytes are needed from the first writer to the last reader") {
  const Live live(
      "(float[4] x) => (float[4] y)"
      "{ a = Exp(x)  b = MatMul(a, a)  c = Exp(x)  d = Mul(c, b)  y = Add(d, a) }",
      {.in_place = false});
  CHECK(live.life("x") == "[0, 2]");
  CHECK(live.life("a") == "[0, 4]");
  CHECK(live.life("b") == "[1, 3]");
  CHECK(live.life("c") == "[2, 3]");
  CHECK(live.life("y") == "[4, 5]");  // outputs to the end
}

TEST_CASE("lifetimes: inputs are written before the first instruction, whoever reads them late") {
  const Live live(
      "(float[4] x, float[4] late, float[4] never) => (float[4] y)"
      "{ a = Exp(x)  b = Neg(a)  y = Add(b, late) }");
  CHECK(live.life("late") == "[0, 2]");
  CHECK(live.buffer("never") == -1);  // nobody reads it
}

TEST_CASE("lifetimes: a result takes over the bytes of an input that dies there") {
  const Live live("(float[4] x) => (float[4] y) { a = Exp(x)  b = Neg(a)  y = Add(b, x) }");
  CHECK(live.share("a", "b"));
  CHECK(live.share("b", "y"));
  CHECK_FALSE(live.share("x", "a"));  // an input is never overwritten
  const Live apart("(float[4] x) => (float[4] y) { a = Exp(x)  b = Neg(a)  y = Add(b, x) }",
                   {.in_place = false});
  CHECK_FALSE(apart.share("a", "b"));
}

TEST_CASE("lifetimes: no sharing with later readers, two readings, other sizes or outputs") {
  CHECK_FALSE(Live("(float[4] x) => (float[4] y) { a = Exp(x)  b = Neg(a)  y = Add(b, a) }")
                  .share("a", "b"));
  CHECK_FALSE(Live("(float[4] x) => (float[4] y) { a = Exp(x)  y = Mul(a, a) }").share("a", "y"));
  CHECK_FALSE(Live("(float[1] x, float[4] z) => (float[4] y) { a = Exp(x)  y = Add(a, z) }")
                  .share("a", "y"));
  CHECK_FALSE(
      Live("(float[4] x) => (float[4] a, float[4] y) { a = Exp(x)  y = Neg(a) }").share("a", "y"));
  CHECK_FALSE(
      Live("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { y = Neg(w) }").share("w", "y"));
}

TEST_CASE("lifetimes: views share their source's bytes and keep them alive") {
  const Live live(
      "(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}>"
      "{ a = Exp(x)  v = Reshape(a, s)  b = Neg(x)  c = Mul(x, b)  y = Neg(v) }");
  CHECK(live.share("a", "v"));
  CHECK(live.share("v", "y"));  // in place through the view
  CHECK(live.life("a") == "[0, 4]");
  // A view read by the same node as its source: not to be overwritten.
  CHECK_FALSE(Live("(float[4] x) => (float[1,4] y) <int64[2] s = {1,4}>"
                   "{ a = Exp(x)  v = Reshape(a, s)  y = Add(v, a) }")
                  .share("v", "y"));
}

TEST_CASE("lifetimes: a view of a parameter is the parameter") {
  const Live live(
      "(float[4] x) => (float[2,2] y) <float[4] w = {1,2,3,4}, int64[2] s = {2,2}>"
      "{ v = Reshape(w, s)  y = Neg(v) }");
  CHECK(live.share("w", "v"));
  CHECK_FALSE(live.share("v", "y"));
  CHECK(live.lifetimes.buffers[static_cast<std::size_t>(live.buffer("v"))].persistent);
}

TEST_CASE(
    "lifetimes: an update goes straight into the state when nothing reads the old one later") {
  const Live after(updating("y = Exp(w)  n = Add(w, x)", "n"));
  CHECK(after.share("w", "n"));
  CHECK(after.lifetimes.copies.empty());
  const Live unread(updating("y = Exp(w)  n = Neg(x)", "n"));
  CHECK(unread.share("w", "n"));
}

TEST_CASE("lifetimes: an update that is read around needs a copy at the end of its phase") {
  const Live before(updating("n = Add(w, x)  y = Exp(w)", "n"));
  CHECK_FALSE(before.share("w", "n"));
  REQUIRE(before.lifetimes.copies.size() == 1);
  CHECK(before.lifetimes.copies[0].phase == Phase::kForward);
  CHECK(before.life("n") == "[0, 2]");
  // The state is read twice; an input of the graph is no place for a state.
  CHECK(Live(updating("y = Exp(x)  n = Mul(w, w)", "n")).lifetimes.copies.size() == 1);
  const Live from_input(updating("y = Exp(x)", "x"));
  REQUIRE(from_input.lifetimes.copies.size() == 1);
  CHECK(from_input.life("x") == "[0, 1]");
}

TEST_CASE("lifetimes: one value may update two states, two states may not be exchanged") {
  const auto two = [](std::string_view of_w, std::string_view of_v) {
    Graph g = graph(
        "(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}, float[4] v = {1,2,3,4}>"
        "{ n = Add(w, x)  y = Mul(v, v) }");
    g.updates.push_back({.state = g.find("w"), .value = g.find(of_w)});
    g.updates.push_back({.state = g.find("v"), .value = g.find(of_v)});
    return g;
  };
  const Live shared(two("n", "n"));
  CHECK(shared.share("w", "n"));
  REQUIRE(shared.lifetimes.copies.size() == 1);
  CHECK(contains(refusal_of([&] { Live(two("v", "w")); }),
                 "the update of 'w' reads 'v', which the same step updates"));
  CHECK(contains(refusal_of([&] { Live(two("n", "w")); }),
                 "the update of 'v' reads 'w', which the same step updates"));
}

TEST_CASE("lifetimes: external parameters and states need no bytes here, constants do") {
  const Live live(graph("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}, float[4] k ="
                        " {1,2,3,4}> { a = Mul(x, w)  y = Add(a, k) }",
                        {.frozen = {"k"}}),
                  {.external_parameters = true});
  const auto& buffers = live.lifetimes.buffers;
  CHECK(buffers[static_cast<std::size_t>(live.buffer("w"))].external);
  CHECK(buffers[static_cast<std::size_t>(live.buffer("w"))].value == live.graph.find("w"));
  CHECK_FALSE(buffers[static_cast<std::size_t>(live.buffer("k"))].external);
  CHECK(buffers[static_cast<std::size_t>(live.buffer("k"))].persistent);
}

TEST_CASE("lifetimes: constants that only shape rules read need no bytes") {
  const Live live("(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}> { y = Reshape(x, s) }");
  CHECK(live.buffer("s") == -1);
}

TEST_CASE("lifetimes: the gradient of the loss takes the bytes of the logits") {
  for (const std::string name : {"mlp", "gpt2", "bert", "llama"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.training.keep_outputs = false;
    const std::unique_ptr<Compiled> compiled = compile(reference.model, options);
    const Program& program = compiled->program;
    int gradients = 0;
    for (const Call& call : program.calls) {
      const Node& node = program.graph.node(call.node);
      if (node.op->name != "CrossEntropyGrad") continue;
      ++gradients;
      const PlannedValue& made = program.place(node.outputs[0]);
      const PlannedValue& logits = program.place(node.inputs[1]);
      CHECK(made.buffer == logits.buffer);
      CHECK(made.offset == logits.offset);
    }
    CHECK(gradients == 1);
  }
}

TEST_CASE("lifetimes: all that lives throughout as one buffer needs as many bytes") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const CompileOptions options = reference.options(GraphMode::kTrain);
    const std::unique_ptr<Compiled> compiled = compile(reference.model, options);
    const Graph& graph = compiled->program.graph;
    std::vector<std::int64_t> workspaces;
    for (const CallId id : calls_by_time(compiled->program)) {
      workspaces.push_back(workspace_bytes_of(compiled->program, compiled->program.call(id)));
    }
    const Lifetimes lifetimes =
        find_lifetimes(graph, phase_order(graph), options.lower, workspaces);
    for (const std::int64_t alignment : {64, 256}) {
      CAPTURE(alignment);
      const memplan::Problem whole = placement_problem(lifetimes, workspaces, alignment);
      const memplan::Problem small = height_problem(lifetimes, workspaces, alignment);
      CHECK(small.buffers.size() < whole.buffers.size());
      CHECK(memplan::lower_bound_bytes(small) == memplan::lower_bound_bytes(whole));
      CHECK(memplan::solve(small).solution.height_bytes ==
            memplan::solve(whole).solution.height_bytes);
    }
  }
}

}  // namespace trainscope::test
