// fold_constants, common_subexpression, dead_code and decompose: what they do and must not do.
#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::string after(std::string_view text, std::string pass, const ImportOptions& options = {}) {
  return node_lines(passed(graph(text, options), {std::move(pass)}));
}

}  // namespace

TEST_CASE("fold_constants: shape arithmetic becomes constants") {
  Graph g =
      passed(graph("(float[2,3] x) => (float[6] y) <int64[1] zero = {0}>"
                   "{ s = Shape(x)  a = Gather(s, zero)  b = Shape <start = 1> (x)  n = Mul(a, b)"
                   "  y = Reshape(x, n) }"),
             {"fold_constants", "dead_code"});
  CHECK(
      print(g) ==
      "input x f32[2,3]\nconstant n/known i64[1] {6}\ny f32[6] = Reshape(x, n/known)\noutput y\n");
}

TEST_CASE("fold_constants: parameters, inputs and graph outputs are not folded") {
  CHECK(after("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(w)  y = Add(x, a) }",
              "fold_constants") == "a f32[2] = Neg(w)\ny f32[2] = Add(x, a)\noutput y\n");
  CHECK(after("(float[2] x) => (int64[1] y) { y = Shape(x) }", "fold_constants") ==
        "y i64[1] = Shape(x)\noutput y\n");
  CHECK(after("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(w)  y = Add(x, a) }",
              "fold_constants", {.frozen = {"w"}}) == "y f32[2] = Add(x, a/known)\noutput y\n");
}

TEST_CASE("common_subexpression: equal nodes are computed once, through whole chains") {
  CHECK(after("(float[2] x) => (float[2] y)"
              "{ a = Exp(x)  b = Exp(x)  c = Neg(a)  d = Neg(b)  y = Add(c, d) }",
              "common_subexpression") ==
        "a f32[2] = Exp(x)\nc f32[2] = Neg(a)\ny f32[2] = Add(c, c)\noutput y\n");
}

TEST_CASE("common_subexpression: another op, attribute, order or output is another node") {
  const std::string lines = after(
      "(float[2,2] x, float[2,2] z) => (float[2,2] y)"
      "{ a = Softmax <axis = 0> (x)  b = Softmax <axis = 1> (x)  c = Sub(x, z)  d = Sub(z, x)"
      "  e = Exp(x)  f = Neg(x)  g = Add(a, b)  h = Add(c, d)  i = Add(e, f)  j = Add(g, h)"
      "  y = Add(i, j) }",
      "common_subexpression");
  for (const char* name : {"a ", "b ", "c ", "d ", "e ", "f "}) {
    CHECK(contains(lines, "\n" + std::string(name)) == (name[0] != 'a'));
  }
}

TEST_CASE("common_subexpression: two outputs with the same elements stay two") {
  constexpr const char* kText =
      "(float[2] x) => (float[2] y, float[2] z) { y = Exp(x)  z = Exp(x) }";
  CHECK(after(kText, "common_subexpression") ==
        "y f32[2] = Exp(x)\nz f32[2] = Exp(x)\noutput y\noutput z\n");
  CHECK_FALSE(changes(graph(kText), "common_subexpression"));
  // An output may take over the bytes of an earlier value that is none; the name moves.
  CHECK(after("(float[2] x) => (float[2] z, float[2] w) { y = Exp(x)  z = Exp(x)  w = Neg(y) }",
              "common_subexpression") ==
        "z f32[2] = Exp(x)\nw f32[2] = Neg(z)\noutput z\noutput w\n");
}

TEST_CASE("common_subexpression: equal constants are kept once, by their bytes and type") {
  Graph g = passed(
      graph("(float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}, float[2] c ="
            " {1, 3}, float[1] one = {1}, float two = {1}>"
            "{ p = Add(x, a)  q = Mul(p, b)  r = Sub(q, c)  s = Mul(r, one)  y = Mul(s, two) }",
            {.frozen = {"*"}}),
      {"common_subexpression"});
  CHECK(g.find("b") == kNoValue);
  CHECK(contains(print(g), "q f32[2] = Mul(p, a)"));
  for (const char* kept : {"a", "c", "one", "two"}) CHECK(g.find(kept) != kNoValue);
}

TEST_CASE("common_subexpression: random nodes keep streams of their own") {
  TrainingOptions options;
  options.mode = GraphMode::kTrain;
  Graph g = passed(graph("(float[8] x) => (float[8] y) <float r = {0.5}, bool t = {1}>"
                         "{ a = Dropout(x, r, t)  b = Dropout(x, r, t)  y = Add(a, b) }",
                         {.frozen = {"r"}}),
                   {"training_form", "common_subexpression"}, options);
  CHECK(count_ops(g, "RandomDropout") == 2);
}

TEST_CASE("dead_code: unread nodes and constants go, in chains; parameters and inputs stay") {
  Graph g = passed(
      graph(
          "(float[2] x, float[2] unread) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {1, 2}>"
          "{ a = Mul(x, w)  b = Mul(a, k)  c, m = Dropout(b)  y = Neg(x) }",
          {.frozen = {"k"}}),
      {"dead_code"});
  CHECK(print(g) ==
        "input x f32[2]\ninput unread f32[2]\nparameter w f32[2]\ny f32[2] = Neg(x)\noutput y\n");
}

TEST_CASE("dead_code: a node with one read output of several stays") {
  const std::string lines =
      after("(float[4] x) => (float[2] y) { a, b = Split(x)  y = Neg(b) }", "dead_code");
  CHECK(contains(lines, "= Split(x)"));
}

TEST_CASE("dead_code: loss, gradients and update values are read from outside") {
  Graph g = graph(
      "(float[2] x) => (float[2] y) <float[2] w = {1, 2}>"
      "{ a = Exp(w)  b = Neg(w)  c = Abs(w)  y = Neg(x)  d = Sqrt(w) }");
  g.loss = g.find("a");
  g.gradients.push_back({.of = g.find("w"), .gradient = g.find("b")});
  g.updates.push_back({.state = g.find("w"), .value = g.find("c")});
  const Graph kept = passed(std::move(g), {"dead_code"});
  CHECK(kept.node_count() == 4);
  CHECK(kept.find("d") == kNoValue);
}

TEST_CASE("decompose: composite ops are replaced by their meaning, outputs keep names") {
  const Graph g =
      passed(graph("(float[2] x) => (float[2] y) { y, m = Dropout(x) }"), {"decompose"});
  CHECK(count_ops(g, "Dropout") == 0);
  CHECK(g.value(g.outputs[0]).name == "y");
  for (NodeId id : g.order()) CHECK_FALSE(static_cast<bool>(g.node(id).op->decompose));
}

TEST_CASE("passes: the numbers of a graph stay the same through every pass and all of them") {
  constexpr const char* kText =
      "(float[2,3,4] x, float[3,4] z) => (float[2,12] y, float[4,3] t, float[2,3,4] u)"
      "<float[4] w = {1, -2, 3, 0.5}, float[2,3,4] zeros = "
      "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "0,0,0,0}, int64[2] s = {2, 12}, int64[3] r = {4, 3, 2}, int64[3] back = {2, 3, 4}, float "
      "one ="
      " {1}, int64[1] ax = {2}, float half = {0.5}>"
      "{ a = Add(x, zeros)  b = Mul(a, w)  c = Mul(x, w)  d = Sub(b, z)  e = Sub(c, z)"
      "  f = Add(d, e)  g = Reshape(f, r)  h = Reshape(g, back)  i = Transpose <perm = [1,2,0]> (h)"
      "  j = Transpose <perm = [2,0,1]> (i)  k = Mul(j, one)  m, mask = Dropout(k)"
      "  n = Reshape(m, s)  y = Tanh(n)  t = Transpose(z)  v = ReduceMean <axes = [2]> (x)"
      "  o = Mul(half, half)  q = Mul(v, o)  u = Add(m, q)  unread = Exp(q) }";
  const Graph before = graph(kText, {.frozen = {"zeros", "one", "half"}});
  const Tensors inputs = random_inputs(before, 1);
  const Tensors expected = outputs_of(before, inputs);
  TrainingOptions options;
  options.mode = GraphMode::kInference;
  const std::vector<std::string> every{"training_form",        "fold_constants", "simplify",
                                       "common_subexpression", "decompose",      "dead_code"};
  for (const std::string& pass : every) {
    CAPTURE(pass);
    const Graph once = passed(before, {pass}, options);
    CHECK(difference(outputs_of(once, inputs), expected) <= 1e-6);
    CHECK_FALSE(changes(once, pass, options));
  }
  const Graph all = passed(before, every, options);
  CHECK(difference(outputs_of(all, inputs), expected) <= 1e-6);
  CHECK(all.node_count() < before.node_count() - 8);
}

}  // namespace trainscope::test
