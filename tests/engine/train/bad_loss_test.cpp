// Trained values that models mostly hold constant, at the first bad tensor of a step.
#include "engine/train/bad_loss.h"

#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {

TEST_CASE("bad_loss: an exponent or a single number that is trained is named") {
  const Graph g = graph(
      "(float[2] x) => (float[2] y) <float[2] power = {3, 3}, float scale = {2}, float[2] w = {1, "
      "1}>"
      " { a = Pow(x, power)  b = Mul(a, scale)  y = Add(b, w) }",
      {.trainable = {"power", "scale", "w"}});
  const auto made_by = [&g](const std::string& value, const std::string& node) {
    return trained_constant(g, {.value = value, .node = node, .op = "op"});
  };
  const auto producer = [&g](const char* value) {
    return g.node(g.value(g.find(value)).producer).name;
  };
  CHECK(made_by("a", producer("a")) == "power");
  CHECK(made_by("b", producer("b")) == "scale");
  CHECK(made_by("y", producer("y")).empty());
  CHECK(made_by("power", "") == "power");
  CHECK(made_by("w", "").empty());
  CHECK(made_by("x", "").empty());
}

TEST_CASE("bad_loss: a divisor is named where the file does not tell that it is a parameter") {
  const Graph g = graph(
      "(float[2] x) => (float[2] y) <float[2] std = {3, 3}, float[2] fill = {2, 2}, float[2] w = "
      "{1, 1}> { a = Div(x, std)  b = Log(fill)  c = Add(a, b)  y = Mul(c, w) }",
      {.trainable = {"std", "fill", "w"}});
  const auto made_by = [&g](const char* value, const UnmarkedNames& unmarked) {
    const std::string& node = g.node(g.value(g.find(value)).producer).name;
    return trained_constant(g, {.value = value, .node = node, .op = "op"}, unmarked);
  };
  const UnmarkedNames all = {"std", "fill", "w"};
  CHECK(made_by("a", all) == "std");
  CHECK(made_by("b", all) == "fill");
  CHECK(made_by("y", all).empty());
  CHECK(made_by("a", {}).empty());
  CHECK(made_by("a", {"w"}).empty());
}

}  // namespace trainscope::test
