// Gradients that the user gives: what the backward graph is made of, for rows, composites and
// functions of the model, and that nothing of it stays in a program.
#include "engine/functions/user_gradients.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

ImportOptions with_gradients(std::string_view text) {
  ImportOptions import;
  import.gradients = std::make_shared<const UserGradients>(text, "grads.txt", op_table());
  return import;
}

CompileOptions training_of(std::string_view gradients, std::vector<std::string> of = {}) {
  CompileOptions options;
  if (!gradients.empty()) options.import = with_gradients(gradients);
  options.training.mode = GraphMode::kGradients;
  options.training.loss.kind = LossKind::kMse;
  options.training.gradient_of = std::move(of);
  return options;
}

// Also in the bodies of nodes.
int count_everywhere(const Graph& graph, std::string_view op) {
  int count = count_ops(graph, op);
  for (const NodeId id : graph.order()) {
    for (const auto& [name, attribute] : graph.node(id).attributes.map()) {
      const auto* body = std::get_if<SharedGraph>(&attribute);
      if (body != nullptr) count += count_everywhere(**body, op);
    }
  }
  return count;
}

// Gradients of the model after the default passes.
Tensors results(std::string_view text, std::string_view gradients, std::vector<std::string> of) {
  const Stages made = stages(text, training_of(gradients, std::move(of)));
  const Graph& last = made.back().graph;
  CHECK(count_everywhere(last, "UserGradient") == 0);
  return results_of(last, random_inputs(last, 3));
}

constexpr std::string_view kTanh =
    "(float[2,3] x) => (float[2,3] y) <float[3] w = {0.1, 0.2, 0.3}> { a = Mul(x, w)  b = Tanh(a)  "
    "y "
    "= Mul(b, x) }";

// Each of three trips takes h to tanh(h w).
constexpr std::string_view kLoop =
    "(float[2,3] x) => (float[2,3] y) <float[3] w = {0.5, 0.7, -0.9}, int64 trips = {3}, bool go = "
    "{1}> { z = Mul(x, w)  y = Loop <body = b (int64 i, bool c, float[2,3] h) => (bool d, "
    "float[2,3] n) { d = Identity(c) p = Mul(h, w) n = Tanh(p) }> (trips, go, z) }";

}  // namespace

TEST_CASE("user gradients: they stand in place of those of an op") {
  const Tensors own = results(kTanh, "", {"a", "b"});
  const Tensors same = results(kTanh,
                               "Tanh_grad (x, y, dy) => (dx) {\n one = Constant <value_float = "
                               "1.0> ()\n square = Mul (y, y)\n"
                               " slope = Sub (one, square)\n dx = Mul (dy, slope) }",
                               {"a", "b"});
  CHECK(difference(same.at("d a"), own.at("d a")) < 1e-6);
  CHECK(difference(same.at("d w"), own.at("d w")) < 1e-6);
  const Tensors other =
      results(kTanh, "Tanh_grad (x, y, dy) => (dx) { dx = Mul (dy, dy) }", {"a", "b"});
  CHECK(difference(other.at("loss"), own.at("loss")) == 0.0);
  for (std::size_t i = 0; i < 6; ++i) {
    const float db = other.at("d b").values<float>()[i];
    CHECK(other.at("d a").values<float>()[i] == doctest::Approx(db * db));
  }
}

TEST_CASE("user gradients: the imported stage shows them, with the node's attributes") {
  const Stages made = stages(
      "(float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { a = Mul(x, w)  y = LeakyRelu "
      "<alpha = 0.25> (a) }",
      training_of("LeakyRelu_grad <alpha: float = 0.01> (x, y, dy) => (dx) {\n"
                  " c = Constant <value_float = @alpha> ()\n dx = Mul (dy, c) }",
                  {"a", "y"}));
  const std::string text = node_lines(made.front().graph);
  CHECK_MESSAGE(contains(text, "UserGradient"), text);
  CHECK_MESSAGE(contains(text, "alpha: float = 0.25"), text);
  CHECK_MESSAGE(contains(text, "file='grads.txt'"), text);
  const Graph& last = made.back().graph;
  const Tensors of = results_of(last, random_inputs(last, 3));
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(of.at("d a").values<float>()[i] ==
          doctest::Approx(0.25F * of.at("d y").values<float>()[i]));
  }
}

TEST_CASE("user gradients: a gradient of a larger shape is summed to its input's") {
  const Tensors own = results(kTanh, "", {});
  const Tensors same = results(kTanh,
                               "Mul_grad (a, b, y, dy) => (da, db) { da = Mul (dy, b)\n db = Mul "
                               "(dy, a) }",
                               {});
  CHECK(difference(same.at("d w"), own.at("d w")) < 1e-6);
}

TEST_CASE("user gradients: ops that the importer writes with others have them too") {
  constexpr std::string_view kText =
      "(float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { a = Mul(x, w)  y = CastLike(a, "
      "x) }";
  const Tensors of =
      results(kText, "CastLike_grad (x, like, y, dy) => (dx, _) { dx = Neg (dy) }", {"y"});
  const Tensors inputs = random_inputs(graph(kText), 3);
  for (std::size_t j = 0; j < 3; ++j) {
    float want = 0.0F;
    for (std::size_t i = j; i < 6; i += 3) {
      want -= of.at("d y").values<float>()[i] * inputs.at("x").values<float>()[i];
    }
    CHECK(of.at("d w").values<float>()[j] == doctest::Approx(want));
  }
}

TEST_CASE("user gradients: the nodes of a loop's body have them too") {
  const Tensors own = results(kLoop, "", {"z", "y"});
  const Tensors same = results(kLoop,
                               "Tanh_grad (x, y, dy) => (dx) {\n one = Constant <value_float = "
                               "1.0> ()\n square = Mul (y, y)\n"
                               " slope = Sub (one, square)\n dx = Mul (dy, slope) }",
                               {"z", "y"});
  for (const char* name : {"d z", "d w", "loss"}) {
    CHECK(difference(same.at(name), own.at(name)) < 1e-6);
  }
  const Tensors passed_on =
      results(kLoop, "Tanh_grad (x, y, dy) => (dx) { dx = Identity (dy) }", {"z", "y"});
  CHECK(difference(passed_on.at("loss"), own.at("loss")) == 0.0);
  const Tensor given = random_inputs(graph(kLoop), 3).at("w");
  const auto w = given.values<float>();
  for (std::size_t i = 0; i < 6; ++i) {
    const float dy = passed_on.at("d y").values<float>()[i];
    const float of_trips = w[i % 3] * w[i % 3] * w[i % 3];
    CHECK(passed_on.at("d z").values<float>()[i] == doctest::Approx(dy * of_trips));
  }
}

TEST_CASE("user gradients: in a body they stay until the whole graph has its gradients") {
  const CompileOptions options = training_of("Tanh_grad (x, y, dy) => (dx) { dx = Neg (dy) }");
  Graph start = graph(kLoop, options.import);
  REQUIRE(count_everywhere(start, "UserGradient") == 1);
  const Graph before = passed(start, {"decompose"}, options.training);
  CHECK(count_everywhere(before, "UserGradient") == 1);
  start.gradients.push_back({.of = start.find("z"), .gradient = start.find("y")});
  CHECK(count_everywhere(passed(start, {"decompose"}, options.training), "UserGradient") == 0);
}

TEST_CASE("user gradients: evaluation and inference have none") {
  for (const GraphMode mode : {GraphMode::kEvaluate, GraphMode::kInference}) {
    CompileOptions options = training_of("Tanh_grad (x, y, dy) => (dx) { dx = Mul (dy, x) }");
    options.training.mode = mode;
    const Stages made = stages(kTanh, options);
    CHECK(count_ops(made.back().graph, "UserGradient") == 0);
  }
}

TEST_CASE("user gradients: what does not fit is refused with file and line") {
  const auto fault = [](std::string_view gradients) {
    return refusal_of([&] { stages(kTanh, training_of(gradients)); });
  };
  const auto check = [&](std::string_view gradients, std::string_view expected) {
    const std::string told = fault(gradients);
    CHECK_MESSAGE(contains(told, expected), told);
  };
  check("Sinh_grad (x, y, dy) => (dx) { dx = Mul (dy, x) }",
        "grads.txt:1: the model has no node of Sinh of version 1 or newer");
  check("<since: 99> Tanh_grad (x, y, dy) => (dx) { dx = Mul (dy, x) }", "no node of Tanh");
  check("Mul_grad (a, y, dy) => (da) { da = Mul (dy, a) }",
        "grads.txt:1: the gradient of Mul is for 1 inputs and 1 outputs, node");
  check("Tanh_grad (x, y, dy) => (dx) {\n dx = Cast <to = 7> (dy) }", "is i64[2,3], its input is");
  check("Tanh_grad (x, y, dy) => (dx) {\n dx = Transpose (dy) }", "the gradient 'dx' is f32[3,2]");
  check("Tanh_grad (x, y, dy) => (dx) {\n t = Transpose (x)\n dx = Mul (dy, t) }", "grads.txt:3");
}

}  // namespace trainscope::test
