// simplify: what goes away, what must stay.
#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::string simplified(std::string_view text) {
  return node_lines(passed(graph(text), {"simplify", "dead_code"}));
}

}  // namespace

TEST_CASE("simplify: neutral operands disappear where the shape stays") {
  const auto node = [](std::string_view expression) {
    return simplified(
        "(float[2,2] x) => (float[2,2] y) <float zero = {0}, float one = {1}, float[3,1,1] ones ="
        " {1,1,1}, float[2,2] zeros = {0,0,0,0}> { a = Neg(x)  b = " +
        std::string(expression) + "  y = Exp(b) }");
  };
  const std::string gone = "a f32[2,2] = Neg(x)\ny f32[2,2] = Exp(a)\noutput y\n";
  for (const std::string neutral : {"Add(a, zero)", "Add(zeros, a)", "Sub(a, zero)", "Mul(a, one)",
                                    "Mul(one, a)", "Div(a, one)"}) {
    CAPTURE(neutral);
    // As the model's own constants: initializers are parameters unless frozen.
    Graph g = graph(
        "(float[2,2] x) => (float[2,2] y) <float zero = {0}, float one = {1}, float[2,2] zeros ="
        " {0,0,0,0}> { a = Neg(x)  b = " +
            neutral + "  y = Exp(b) }",
        {.frozen = {"*"}});
    CHECK(node_lines(passed(g, {"simplify", "dead_code"})) == gone);
  }
  for (const std::string kept : {"Sub(zero, a)", "Div(one, a)", "Mul(a, zero)", "Add(a, one)"}) {
    CAPTURE(kept);
    CHECK(contains(node(kept), "b f32[2,2]"));
  }
  CHECK(contains(node("Add(a, zeros)"), "b f32[2,2] = Add"));  // zeros is a parameter here
}

TEST_CASE("simplify: a neutral operand that broadcasts stays") {
  Graph g = graph(
      "(float[2] x) => (float[3,2] y) <float[3,1] ones = {1,1,1}> { a = Neg(x)  b = Mul(a, ones)"
      "  y = Exp(b) }",
      {.frozen = {"*"}});
  CHECK(count_ops(passed(g, {"simplify"}), "Mul") == 1);
}

TEST_CASE("simplify: nodes that change nothing disappear") {
  CHECK(simplified("(float[2,3] x) => (float[2,3] y) <int64[2] s = {2,3}, int64[1] b = {0},"
                   " int64[1] e = {9}, int64[1] ax = {1}>"
                   "{ a = Identity(x)  c = Reshape(a, s)  d = Transpose <perm = [0, 1]> (c)"
                   "  f = Slice(d, b, e, ax)  g = Cast <to = 1> (f)  h = Concat <axis = 0> (g)"
                   "  i = Expand(h, s)  y = Exp(i) }") == "y f32[2,3] = Exp(x)\noutput y\n");
}

TEST_CASE("simplify: casts, slices and transposes that do something stay") {
  const std::string lines = simplified(
      "(float[2,2] x) => (float[2,2] y) <int64[1] b = {-1}, int64[1] e = {-9}, int64[1] ax = {1},"
      " int64[1] back = {-1}>"
      "{ a = Slice(x, b, e, ax, back)  c = Cast <to = 7> (a)  d = Cast <to = 1> (c)"
      "  f = Transpose <perm = [1, 0]> (d)  y = Exp(f) }");
  for (const std::string op : {"Slice(", "Cast(a)", "Cast(c)", "Transpose("}) {
    CAPTURE(op);
    CHECK(contains(lines, op));
  }
}

TEST_CASE("simplify: a gradient's stop stays between views") {
  const Graph own = graph(
      OnnxModel::parse_text(
          R"(<ir_version: 8, opset_import: ["" : 17, "ai.trainscope" : 1]> g )"
          "(float[2,6] x) => (float[12] y) <int64[2] s = {3,4}, int64[1] f = {12}> "
          "{ n = Neg(x)  a = Reshape(n, s)  b = ai.trainscope.StopGradient(a)  c = Reshape(b, f)"
          "  y = Exp(c) }"),
      {});
  const std::string text = node_lines(passed(own, {"simplify", "dead_code"}));
  CHECK(contains(text, "StopGradient"));
  CHECK(contains(text, "Reshape(n"));
}

TEST_CASE("simplify: reshapes of reshapes become one, or none") {
  CHECK(simplified("(float[2,6] x) => (float[12] y) <int64[2] s = {3,4}, int64[1] f = {-1}>"
                   "{ n = Neg(x)  a = Reshape(n, s)  b = Flatten <axis = 0> (a)  c = Reshape(b, f)"
                   "  y = Exp(c) }") ==
        "n f32[2,6] = Neg(x)\nReshape_1 f32[12] = Reshape(n, shape_1) allowzero=1\n"
        "y f32[12] = Exp(Reshape_1)\noutput y\n");
  CHECK(simplified("(float[2,6] x) => (float[2,6] y) <int64[2] s = {3,4}, int64[2] back = {2,6}>"
                   "{ n = Neg(x)  a = Reshape(n, s)  b = Reshape(a, back)  y = Exp(b) }") ==
        "n f32[2,6] = Neg(x)\ny f32[2,6] = Exp(n)\noutput y\n");
}

TEST_CASE("simplify: transposes of transposes become one, or none") {
  CHECK(simplified("(float[2,3,4] x) => (float[3,4,2] y)"
                   "{ a = Transpose <perm = [2, 0, 1]> (x)  b = Transpose <perm = [2, 0, 1]> (a)"
                   "  y = Exp(b) }") ==
        "Transpose f32[3,4,2] = Transpose(x) perm={1,2,0}\n"
        "y f32[3,4,2] = Exp(Transpose)\noutput y\n");
  CHECK(simplified("(float[2,3,4] x) => (float[2,3,4] y)"
                   "{ a = Transpose <perm = [2, 0, 1]> (x)  b = Transpose <perm = [1, 2, 0]> (a)"
                   "  y = Exp(b) }") == "y f32[2,3,4] = Exp(x)\noutput y\n");
}

TEST_CASE("simplify: an output keeps its name, also when its node does nothing") {
  CHECK(simplified("(float[2] x) => (float[2] y) { a = Exp(x)  y = Identity(a) }") ==
        "y f32[2] = Exp(x)\noutput y\n");
  // Nothing may rename the input, or give one value two names.
  CHECK(simplified("(float[2] x) => (float[2] y) { y = Identity(x) }") ==
        "y f32[2] = Identity(x)\noutput y\n");
  CHECK(simplified("(float[2] x) => (float[2] y, float[2] z) { y = Exp(x)  z = Identity(y) }") ==
        "y f32[2] = Exp(x)\nz f32[2] = Identity(y)\noutput y\noutput z\n");
}

TEST_CASE("simplify: what cannot be replaced is not reported as changed") {
  const std::string kTexts[] = {
      "(float[2] x) => (float[2] y) { y = Identity(x) }",
      "(float[6] x) => (float[6] y) <int64[2] s = {2,3}, int64[1] f = {6}>"
      "{ a = Reshape(x, s)  y = Reshape(a, f) }",
      "(float[2,3] x) => (float[2,3] y)"
      "{ a = Transpose <perm = [1, 0]> (x)  y = Transpose <perm = [1, 0]> (a) }"};
  for (const std::string& text : kTexts) {
    CAPTURE(text);
    const Graph once = passed(graph(text), {"simplify"});
    CHECK_FALSE(changes(once, "simplify"));
    CHECK(print(passed(once, {"simplify"})) == print(once));
  }
}

}  // namespace trainscope::test
