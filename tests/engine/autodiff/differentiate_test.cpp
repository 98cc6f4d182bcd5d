// differentiate: gradients of small graphs against central differences in f64, and what it refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/ir/builder.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr double kStep = 1e-5;
constexpr double kGradientLimit =
    1e-7;  // relative error of a gradient as a whole; about 1e-10 is measured

TrainingOptions gradients(LossKind kind = LossKind::kMse) {
  TrainingOptions options;
  options.mode = GraphMode::kGradients;
  options.loss.kind = kind;
  return options;
}

const std::vector<std::string> kPasses{"training_form", "loss", "decompose", "differentiate"};

Graph differentiated(std::string_view text, const TrainingOptions& options,
                     ImportOptions import = {}) {
  import.float_type = DType::kF64;
  return passed(graph(text, import), kPasses, options);
}

double loss_at(const Graph& graph, const Tensors& inputs) {
  return results_of(graph, inputs).at("loss").values<double>()[0];
}

// ||gradient - central differences|| / ||central differences|| of one value's gradient.
double gradient_error(const Graph& graph, const Tensors& inputs, const std::string& name) {
  const Tensor gradient = results_of(graph, inputs).at("d " + name);
  double error = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < gradient.values<double>().size(); ++i) {
    Tensors moved = inputs;
    double& element = moved.at(name).values<double>()[i];
    const double at = element;
    element = at + kStep;
    const double above = loss_at(graph, moved);
    moved.at(name).values<double>()[i] = at - kStep;
    const double slope = (above - loss_at(graph, moved)) / (2.0 * kStep);
    error += std::pow(gradient.values<double>()[i] - slope, 2);
    norm += slope * slope;
  }
  return std::sqrt(error) / std::max(std::sqrt(norm), 1e-12);
}

// All recorded gradients are right; the names of their values.
std::vector<std::string> check_gradients(const Graph& graph, Tensors inputs) {
  std::vector<std::string> names;
  for (const GradientOf& g : graph.gradients) {
    const std::string name = graph.value(g.of).name;
    names.push_back(name);
    CAPTURE(name);
    CHECK(gradient_error(graph, inputs, name) < kGradientLimit);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> check_text(std::string_view text,
                                    const TrainingOptions& options = gradients()) {
  const Graph g = differentiated(text, options);
  return check_gradients(g, random_inputs(g, 3));
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("differentiate: a multilayer perceptron with cross entropy") {
  TrainingOptions options = gradients(LossKind::kCrossEntropy);
  options.loss.ignore_index = 3;
  const Graph g = differentiated(
      "(float[4,3] x) => (float[4,10] y) <float[3,5] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, float[5] "
      "b"
      " = {0,0,0,0,0}, float[10,5] v = "
      "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}>"
      "{ h = Gemm(x, w, b)  a = Tanh(h)  y = Gemm <transB = 1> (a, v) }",
      options);
  CHECK(check_gradients(g, random_inputs(g, 3)) == Names{"b", "v", "w"});
}

TEST_CASE("differentiate: a value that is read several times gets the sum") {
  CHECK(check_text("(float[2,3] x) => (float[2,3] y) <float[2,3] w = {0,0,0,0,0,0}>"
                   "{ a = Mul(x, w)  b = Mul(a, a)  c = Sub(b, a)  d = Sigmoid(a)  e = Add(c, d)"
                   "  y = Mul(e, a) }") == Names{"w"});
}

TEST_CASE("differentiate: tied weights get one gradient from all their uses") {
  CHECK(check_text("(float[2,3] x) => (float[2,3] y) <float[3,4] w = {0,0,0,0,0,0,0,0,0,0,0,0}>"
                   "{ h = MatMul(x, w)  a = Tanh(h)  t = Transpose(w)  y = MatMul(a, t) }") ==
        Names{"w"});
}

TEST_CASE("differentiate: broadcast parameters of every kind") {
  CHECK(check_text("(float[2,3] x) => (float[2,3] y) <float[3] row = {0,0,0}, float[2,1] column ="
                   " {0,0}, float one = {0}, float[1,1] small = {0}>"
                   "{ a = Mul(x, row)  b = Add(a, column)  c = Mul(b, one)  d = Add(row, small)"
                   "  y = Sub(c, d) }") == Names{"column", "one", "row", "small"});
}

TEST_CASE("differentiate: a graph output that is read on, and one that is not on the path") {
  CHECK(check_text("(float[2,3] x) => (float[2,3] y, float[2,3] h, float[2,3] aside)"
                   "<float[3] w = {0,0,0}, float[3] v = {0,0,0}>"
                   "{ h = Mul(x, w)  a = Tanh(h)  y = Mul(a, v)  aside = Mul(h, v) }") ==
        Names{"v", "w"});
}

TEST_CASE("differentiate: splitting, joining, gathering and masking") {
  CHECK(
      check_text(
          "(float[2,4] x) => (float[4,5] y) <float[4,4] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0},"
          " int64[3] rows = {2,0,2}, int64[1] b = {1}, int64[1] e = {3}, int64[1] ax = {1},"
          " bool[2] mask = {1,0}, float[2] fill = {0,0}>"
          "{ h = MatMul(x, w)  p, q = Split <axis = 1> (h)  m = Where(mask, p, fill)"
          "  s = Slice(h, b, e, ax)  c = Concat <axis = 0> (m, s)  g = Gather <axis = 1> (w, rows)"
          "  y = Concat <axis = 1> (c, g) }") == Names{"fill", "w"});
}

TEST_CASE("differentiate: reductions, softmax and layer norm") {
  CHECK(
      check_text("(float[2,3,4] x) => (float[2,3] y) <float[4] scale = {0,0,0,0}, float[4] bias ="
                 " {0,0,0,0}, float[3,1] w = {0,0,0}>"
                 "{ n = LayerNormalization <axis = -1> (x, scale, bias)  a = Mul(n, w)"
                 "  s = Softmax <axis = 1> (a)  y = ReduceMean <axes = [2], keepdims = 0> (s) }") ==
      Names{"bias", "scale", "w"});
}

TEST_CASE("differentiate: convolution, batch norm on batch statistics, pooling") {
  CHECK(
      check_text(
          "(float[2,2,5,5] x) => (float[2,3,2,2] y) <float[3,2,2,2] w = {0,0,0,0,0,0,0,0,0,0,0,0,0"
          ",0,0,0,0,0,0,0,0,0,0,0}, float[3] b = {0,0,0}, float[3] s = {0,0,0}, float[3] o ="
          " {0,0,0}, float[3] mean = {0,0,0}, float[3] var = {1,1,1}>"
          "{ c = Conv(x, w)  n = BatchNormalization(c, s, o, mean, var)  t = Tanh(n)"
          "  p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (t)  q = Transpose <perm ="
          " [0,2,3,1]> (p)  r = Add(q, b)  y = Transpose <perm = [0,3,1,2]> (r) }") ==
      Names{"b", "o", "s", "w"});
}

TEST_CASE("differentiate: frozen parameters and those without a path have no gradient") {
  constexpr const char* kText =
      "(float[2,3] x) => (float[2,3] y, float[2,3] aside) <float[3] w = {0,0,0}, float[3] frozen ="
      " {2,2,2}, float[3] elsewhere = {0,0,0}>"
      "{ a = Mul(x, w)  y = Mul(a, frozen)  aside = Mul(x, elsewhere) }";
  const Graph g = differentiated(kText, gradients(), {.frozen = {"frozen"}});
  CHECK(check_gradients(g, random_inputs(g, 3)) == Names{"w"});
  const Graph other = differentiated(kText, gradients(), {.trainable = {"fro*"}});
  CHECK(check_gradients(other, random_inputs(other, 3)) == Names{"frozen"});
}

TEST_CASE("differentiate: gradients of inputs and inner values on request, the loss's own is 1") {
  TrainingOptions options = gradients();
  options.gradient_of = {"x", "w"};
  const std::string text =
      "(float[2,3] x) => (float[2,3] y) <float[3] w = {0,0,0}> { a = Mul(x, w)  y = Tanh(a) }";
  CHECK(check_text(text, options) == Names{"w", "x"});
  options.gradient_of = {"a"};
  const Graph g = differentiated(text, options);
  const Tensors results = results_of(g, random_inputs(g, 3));
  const Tensors inputs = random_inputs(g, 3);
  // d w = sum over rows of d a * x.
  double sum = 0.0;
  for (std::size_t row : {0U, 1U}) {
    sum += results.at("d a").values<double>()[3 * row] * inputs.at("x").values<double>()[3 * row];
  }
  CHECK(results.at("d w").values<double>()[0] == doctest::Approx(sum));
  options.gradient_of = {"nothing"};
  CHECK(contains(refusal_of([&] { differentiated(text, options); }),
                 "the model has no value 'nothing'"));
}

TEST_CASE("differentiate: two values with one gradient both get it under their own names") {
  const Graph g = differentiated(
      "(float[2] x) => (float[2] y) <float[2] v = {0,0}, float[2] w = {0,0}>"
      "{ a = Add(v, w)  y = Mul(a, x) }",
      gradients());
  CHECK(check_gradients(g, random_inputs(g, 3)) == Names{"v", "w"});
  CHECK(g.find("grad/v") != kNoValue);
  CHECK(g.find("grad/w") != kNoValue);
  CHECK(g.find("grad/v") != g.find("grad/w"));
}

TEST_CASE("differentiate: the backward graph reads only what the gradient rules mention") {
  const Graph g = differentiated(
      "(float[2] x) => (float[2] y) <float[2] w = {0,0}, float[2] b = {0,0}>"
      "{ m = Mul(x, w)  s = Add(m, b)  e = Exp(s)  y = Neg(e) }",
      gradients());
  // Exp needs its result, Mul its factors; sums need nothing.
  const auto backward_readers = [&](std::string_view name) {
    return std::ranges::count_if(g.value(g.find(name)).uses, [&](const Use& use) {
      return g.node(use.node).phase == Phase::kBackward;
    });
  };
  CHECK(backward_readers("m") == 0);
  CHECK(backward_readers("s") == 0);
  CHECK(backward_readers("b") == 0);
  CHECK(backward_readers("w") == 0);  // x wants no gradient
  CHECK(backward_readers("e") >= 1);
  CHECK(backward_readers("x") >= 1);
  for (NodeId id : g.order()) {
    const Node& node = g.node(id);
    if (node.phase == Phase::kBackward) CHECK(node.provenance.pass == "differentiate");
  }
}

TEST_CASE("differentiate: nothing to train is a usage error") {
  const std::optional<Error> error = error_of([] {
    differentiated(
        "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,1}>"
        "{ y = Neg(x)  z = Mul(x, w) }",
        gradients());
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(contains(error->message(), "no trainable parameter influences the loss"));
}

TEST_CASE("differentiate: every op without a gradient is listed at once with its nodes") {
  Graph g =
      graph("(float[2] x) => (float[2] y) <float[2] w = {1,1}> { a = Mul(x, w)  y = Neg(a) }");
  Builder b(g, op_table());
  b.set_provenance({.sources = {}, .pass = "test"});
  const ValueId a = g.find("a");
  const ValueId first = b("LogSoftmaxGrad", {a, g.find("x")});
  const ValueId second = b("LogSoftmaxGrad", {first, a});
  const ValueId third = b("SoftmaxGrad", {second, a});
  b("SoftmaxGrad", {a, a});                      // not on the path to the loss
  b("SoftmaxGrad", {g.find("x"), g.find("x")});  // no parameter behind it
  g.outputs[0] = third;
  const std::optional<Error> error = error_of([&] {
    passed(std::move(g), {"loss", "differentiate"}, gradients());
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->message() == "the model cannot be trained: ops without a gradient");
  REQUIRE(error->context().size() == 3);
  CHECK(error->context()[0] == "LogSoftmaxGrad: 2 nodes: LogSoftmaxGrad, LogSoftmaxGrad_1");
  CHECK(error->context()[1] == "SoftmaxGrad: 1 node: SoftmaxGrad");
  CHECK(error->context()[2] == "in pass differentiate");
  CHECK(contains(error->hint(), "--freeze"));
}

TEST_CASE("differentiate: nodes whose rule refuses are listed together, behind each other too") {
  const std::optional<Error> error = error_of([&] {
    passed(graph("(float[2,3] x) => (float[2,1] y) <float[2,3] w = {1,2,3,4,5,6}, float[3] s ="
                 " {1,1,1}, float[1] t = {1}> { h = Mul(x, w)  n, m = LayerNormalization(h, s)"
                 "  o, y = LayerNormalization(m, t) }"),
           {"loss", "differentiate"}, gradients());
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  REQUIRE(error->context().size() == 3);
  for (int i : {0, 1}) {
    const std::string& line = error->context()[static_cast<std::size_t>(i)];
    CHECK(contains(line, "gradient of LayerNormalization"));
    CHECK(contains(line, "output 1 of LayerNormalization influences the loss"));
  }
  CHECK(error->context()[0] != error->context()[1]);
}

TEST_CASE("differentiate: integer results stop gradients without an error") {
  CHECK(check_text("(float[2,3] x) => (float[2,3] y) <float[2,3] w = {0,0,0,0,0,0}>"
                   "{ a = Mul(x, w)  i = Cast <to = 7> (a)  f = Cast <to = 11> (i)  z = Mul(f, w)"
                   "  y = Add(z, a) }") == Names{"w"});
}

TEST_CASE("differentiate: steps pass gradients straight through where that is asked for") {
  for (const std::string op : {"Round", "Floor", "Ceil", "Sign"}) {
    CAPTURE(op);
    const std::string text =
        "(float[3] x) => (float[3] y) <float[3] w = {1,2,3}> { a = Mul(x, w)  s = " + op +
        "(a)  y = Tanh(s) }";
    TrainingOptions options = gradients();
    options.gradient_of = {"s", "w"};
    CHECK(contains(refusal_of([&] { differentiated(text, gradients()); }), "nothing to train"));
    options.straight_through = true;
    const Graph g = differentiated(text, options);
    const Tensors inputs = random_inputs(g, 3);
    const Tensors results = results_of(g, inputs);
    const auto ds = results.at("d s").values<double>();
    for (std::size_t i = 0; i < ds.size(); ++i) {
      const double want = ds[i] * inputs.at("x").values<double>()[i];
      CHECK(results.at("d w").values<double>()[i] == doctest::Approx(want));
    }
  }
}

TEST_CASE("differentiate: steps in the body of a loop pass gradients straight through too") {
  const std::string text =
      "(float[3] x) => (float[3] y) <float[3] w = {1,2,3}, int64 trips = {2}, bool go = {1}> { a = "
      "Mul(x, w)  s = Loop <body = b (int64 i, bool c, float[3] h) => (bool d, float[3] n) { d = "
      "Identity(c) p = Mul(h, w) n = Round(p) }> (trips, go, a)  y = Tanh(s) }";
  TrainingOptions options = gradients();
  options.gradient_of = {"s", "a"};
  options.straight_through = true;
  const Graph g = differentiated(text, options);
  const Tensors inputs = random_inputs(g, 3);
  const Tensors results = results_of(g, inputs);
  const auto ds = results.at("d s").values<double>();
  for (std::size_t i = 0; i < ds.size(); ++i) {
    const double w = inputs.at("w").values<double>()[i];
    CHECK(results.at("d a").values<double>()[i] == doctest::Approx(ds[i] * w * w));
  }
}

TEST_CASE("differentiate: what a decomposition rounds passes nothing on") {
  // GridSample takes the floor of a place: its gradient by the grid is that of the weights alone.
  TrainingOptions options = gradients();
  options.straight_through = true;
  CHECK(check_text("(float[1,1,3,4] x) => (float[1,1,1,2] y) <float[1,1,2,2] grid = {0,0,0,0}>"
                   "{ y = GridSample(x, grid) }",
                   options) == Names{"grid"});
}

TEST_CASE("differentiate: a gradient knows what it is of, a node whose gradient it is a part of") {
  const Graph g = differentiated(
      "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {1,2}>"
      "{ a = Mul(x, w)  b = Add(a, v)  y = Exp(b) }",
      gradients());
  const auto gradient_of = [&g](std::string_view name) {
    const Serial serial = g.value(g.find(name)).serial;
    std::vector<std::string> found;
    for (ValueId id : g.live_values()) {
      if (std::ranges::count(g.value(id).gradient_of, serial) > 0)
        found.push_back(g.value(id).name);
    }
    REQUIRE(found.size() == 1);
    return found[0];
  };
  CHECK(gradient_of("w") == "grad/w");
  CHECK(gradient_of("v") == "grad/v");
  CHECK(gradient_of("a") == gradient_of("b"));  // it passes through the addition
  CHECK(gradient_of("b") != gradient_of("y"));
  const NodeId mul = g.value(g.find("a")).producer;
  const NodeId of_w = g.value(g.find("grad/w")).producer;
  CHECK(g.node(of_w).provenance.backward_of == g.node(mul).serial);
  CHECK(g.node(mul).provenance.backward_of == kNoSerial);
}

}  // namespace trainscope::test
