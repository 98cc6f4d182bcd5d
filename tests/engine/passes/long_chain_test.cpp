// Graphs of 100,000 nodes: no recursion over the graph, no pass that is quadratic in its size.
#include <doctest/doctest.h>

#include <ctime>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr int kNodes = 100'000;
constexpr double kMaxSeconds = 20.0;  // measured: 1 to 3; quadratic passes take minutes

// A chain from x to the output y; `add` appends one node to a value.
template <typename Add>
Graph chain(Add add) {
  Graph g;
  Builder b(g, op_table());
  ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
  for (int i = 0; i < kNodes; ++i) {
    b.set_provenance({.sources = {"node" + std::to_string(i)}, .pass = "import"});
    v = add(b, v, i);
  }
  g.rename(v, "y");
  g.outputs.push_back(v);
  return g;
}

// Processor time, so that other programs do not count.
double seconds_of(const std::function<void()>& action) {
  const std::clock_t start = std::clock();
  action();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
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

}  // namespace

TEST_CASE("passes: a chain of nodes without effect vanishes in linear time") {
  Graph g = chain(
      [](Builder& b, ValueId v, int i) { return i == 0 ? b("Exp", {v}) : b("Identity", {v}); });
  CHECK(seconds_of([&] { g = passed(std::move(g), kForward); }) < kMaxSeconds);
  CHECK(node_lines(g) == "y f32[2,2] = Exp(x)\noutput y\n");
  CHECK(g.node(g.first()).provenance.sources.size() == kNodes);
}

TEST_CASE("passes: chains of reshapes and transposes collapse in linear time") {
  Graph g = chain([](Builder& b, ValueId v, int i) {
    return i % 2 == 0 ? b.reshape(v, i % 4 == 0 ? Shape{4, 1} : Shape{2, 2}) : b("Neg", {v});
  });
  CHECK(seconds_of([&] { g = passed(std::move(g), kForward); }) < kMaxSeconds);
  CHECK(verify(g).empty());
  Graph t = chain([](Builder& b, ValueId v, int) {
    return b("Transpose", {v}, {{"perm", Ints{1, 0}}});
  });
  CHECK(seconds_of([&] { t = passed(std::move(t), kForward); }) < kMaxSeconds);
  CHECK(t.node_count() <= 1);
}

TEST_CASE("passes: equal branches of 50,000 nodes each are merged in linear time") {
  Graph g;
  Builder b(g, op_table());
  b.set_provenance({.sources = {"node"}, .pass = "import"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2}});
  ValueId left = x;
  ValueId right = x;
  for (int i = 0; i < kNodes / 2; ++i) {
    left = b("Neg", {left});
    right = b("Neg", {right});
  }
  g.outputs.push_back(b("Add", {left, right}));
  CHECK(seconds_of([&] { g = passed(std::move(g), kForward); }) < kMaxSeconds);
  CHECK(g.node_count() == kNodes / 2 + 1);
}

TEST_CASE("passes: a constant with 100,000 readers is folded and forgotten in linear time") {
  Graph g;
  Builder b(g, op_table());
  b.set_provenance({.sources = {"node"}, .pass = "import"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2}});
  const ValueId shared = b.constant(floats({2}, {1, 2}));
  for (int i = 0; i < kNodes; ++i) b("Add", {x, shared});
  g.outputs.push_back(b("Neg", {x}));
  CHECK(seconds_of([&] { g = passed(std::move(g), kForward); }) < kMaxSeconds);
  CHECK(g.node_count() == 1);
  CHECK(g.values_of(ValueKind::kConstant).empty());
}

TEST_CASE("passes: a chain of 100,000 nodes is differentiated and trained in linear time") {
  Graph g;
  Builder b(g, op_table());
  b.set_provenance({.sources = {"node"}, .pass = "import"});
  ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
  Value w;
  w.name = "w";
  w.type = {.dtype = DType::kF32, .shape = {2, 2}};
  w.kind = ValueKind::kParameter;
  const ValueId weight = g.add_value(std::move(w));
  for (int i = 0; i < kNodes; ++i) v = i % 100 == 0 ? b("Mul", {v, weight}) : b("Neg", {v});
  g.outputs.push_back(v);
  CHECK(seconds_of([&] {
          g = passed(std::move(g),
                     {"loss", "decompose", "differentiate", "optimizer_step", "simplify",
                      "common_subexpression", "dead_code"},
                     training(GraphMode::kTrain));
        }) < kMaxSeconds);
  CHECK(g.updates.size() == 1);
  CHECK(g.node_count() > 2 * kNodes - 200);
}

TEST_CASE("passes: 20,000 parameters in a chain are trained in linear time") {
  constexpr int kParameters = 20'000;
  Graph g;
  Builder b(g, op_table());
  b.set_provenance({.sources = {"node"}, .pass = "import"});
  ValueId v = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
  for (int i = 0; i < kParameters; ++i) {
    Value w;
    w.name = "w" + std::to_string(i);
    w.type = {.dtype = DType::kF32, .shape = {2, 2}};
    w.kind = ValueKind::kParameter;
    v = b("Mul", {b("Identity", {v}), g.add_value(std::move(w))});
  }
  g.outputs.push_back(v);
  CHECK(seconds_of([&] {
          g = passed(std::move(g),
                     {"fold_constants", "simplify", "loss", "decompose", "differentiate",
                      "optimizer_step", "simplify", "common_subexpression", "dead_code"},
                     training(GraphMode::kTrain));
        }) < kMaxSeconds);
  CHECK(g.updates.size() == kParameters);
}

}  // namespace trainscope::test
