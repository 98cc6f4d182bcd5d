// Graphs of 100,000 nodes: no recursion over the graph, no pass that is quadratic in its size.
#include <doctest/doctest.h>

#include "tests/support/graph_text.h"
#include "tests/support/growth.h"

namespace trainscope::test {
namespace {

constexpr int kNodes = 100'000;

// A chain of n nodes from x to the output y; `add` appends one node to a value.
template <typename Add>
Graph chain(int n, Add add) {
  Graph g;
  Builder b(g, op_table());
  ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
  for (int i = 0; i < n; ++i) {
    b.set_provenance({.sources = {"node" + std::to_string(i)}, .pass = "import"});
    v = add(b, v, i);
  }
  g.rename(v, "y");
  g.outputs.push_back(v);
  return g;
}

TrainingOptions training(GraphMode mode) {
  TrainingOptions options;
  options.mode = mode;
  options.loss.kind = LossKind::kMse;
  options.optimizer.kind = OptimizerKind::kSgd;
  return options;
}

const std::vector<std::string> kForward{"fold_constants", "simplify", "common_subexpression",
                                        "dead_code", "decompose"};

double seconds_forward(Graph& g) {
  return processor_seconds([&] { g = passed(std::move(g), kForward); });
}

ValueId add_weight(Graph& g, const std::string& name) {
  Value w;
  w.name = name;
  w.type = {.dtype = DType::kF32, .shape = {2, 2}};
  w.kind = ValueKind::kParameter;
  return g.add_value(std::move(w));
}

}  // namespace

TEST_CASE("passes: a chain of nodes without effect vanishes in linear time") {
  check_linear(kNodes, [](int nodes) {
    Graph g = chain(nodes, [](Builder& b, ValueId v, int i) {
      return i == 0 ? b("Exp", {v}) : b("Identity", {v});
    });
    const double seconds = seconds_forward(g);
    CHECK(node_lines(g) == "y f32[2,2] = Exp(x)\noutput y\n");
    CHECK(std::ssize(g.node(g.first()).provenance.sources) == nodes);
    return seconds;
  });
}

TEST_CASE("passes: chains of reshapes and transposes collapse in linear time") {
  check_linear(kNodes, [](int nodes) {
    Graph g = chain(nodes, [](Builder& b, ValueId v, int i) {
      return i % 2 == 0 ? b.reshape(v, i % 4 == 0 ? Shape{4, 1} : Shape{2, 2}) : b("Neg", {v});
    });
    const double seconds = seconds_forward(g);
    CHECK(verify(g).empty());
    return seconds;
  });
  check_linear(kNodes, [](int nodes) {
    Graph g = chain(nodes, [](Builder& b, ValueId v, int) {
      return b("Transpose", {v}, {{"perm", Ints{1, 0}}});
    });
    const double seconds = seconds_forward(g);
    CHECK(g.node_count() <= 1);
    return seconds;
  });
}

TEST_CASE("passes: equal branches of 50,000 nodes each are merged in linear time") {
  check_linear(kNodes, [](int nodes) {
    Graph g;
    Builder b(g, op_table());
    b.set_provenance({.sources = {"node"}, .pass = "import"});
    const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2}});
    ValueId left = x;
    ValueId right = x;
    for (int i = 0; i < nodes / 2; ++i) {
      left = b("Neg", {left});
      right = b("Neg", {right});
    }
    g.outputs.push_back(b("Add", {left, right}));
    const double seconds = seconds_forward(g);
    CHECK(g.node_count() == nodes / 2 + 1);
    return seconds;
  });
}

TEST_CASE("passes: a constant with 100,000 readers is folded and forgotten in linear time") {
  check_linear(kNodes, [](int nodes) {
    Graph g;
    Builder b(g, op_table());
    b.set_provenance({.sources = {"node"}, .pass = "import"});
    const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2}});
    const ValueId shared = b.constant(floats({2}, {1, 2}));
    for (int i = 0; i < nodes; ++i) b("Add", {x, shared});
    g.outputs.push_back(b("Neg", {x}));
    const double seconds = seconds_forward(g);
    CHECK(g.node_count() == 1);
    CHECK(g.values_of(ValueKind::kConstant).empty());
    return seconds;
  });
}

TEST_CASE("passes: a chain of 100,000 nodes is differentiated and trained in linear time") {
  check_linear(kNodes, [](int nodes) {
    Graph g;
    Builder b(g, op_table());
    b.set_provenance({.sources = {"node"}, .pass = "import"});
    ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
    const ValueId weight = add_weight(g, "w");
    for (int i = 0; i < nodes; ++i) v = i % 100 == 0 ? b("Mul", {v, weight}) : b("Neg", {v});
    g.outputs.push_back(v);
    const double seconds = processor_seconds([&] {
      g = passed(std::move(g),
                 {"loss", "decompose", "differentiate", "optimizer_step", "simplify",
                  "common_subexpression", "dead_code"},
                 training(GraphMode::kTrain));
    });
    CHECK(g.updates.size() == 1);
    CHECK(g.node_count() > 2 * nodes - 200);
    return seconds;
  });
}

TEST_CASE("passes: 20,000 parameters in a chain are trained in linear time") {
  check_linear(20'000, [](int parameters) {
    Graph g;
    Builder b(g, op_table());
    b.set_provenance({.sources = {"node"}, .pass = "import"});
    ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
    for (int i = 0; i < parameters; ++i) {
      v = b("Mul", {b("Identity", {v}), add_weight(g, "w" + std::to_string(i))});
    }
    g.outputs.push_back(v);
    const double seconds = processor_seconds([&] {
      g = passed(std::move(g),
                 {"fold_constants", "simplify", "loss", "decompose", "differentiate",
                  "optimizer_step", "simplify", "common_subexpression", "dead_code"},
                 training(GraphMode::kTrain));
    });
    CHECK(std::ssize(g.updates) == parameters);
    return seconds;
  });
}

}  // namespace trainscope::test
