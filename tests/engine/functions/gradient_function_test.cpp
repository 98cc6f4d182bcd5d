// Gradients as functions: which they are of, and what does not fit.
#include "engine/functions/gradient_function.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compile.h"
#include "engine/functions/user_gradients.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {

TEST_CASE("gradient functions: results count inputs, the rest are outputs and their gradients") {
  const GradientFunction one =
      parse_gradient("Foo_grad (x, y, dy) => (dx) { dx = Mul (dy, y) }", "f.txt", op_table());
  CHECK(one.op == "Foo");
  CHECK(one.inputs == 1);
  CHECK(one.outputs == 1);
  const GradientFunction two = parse_gradient(
      "Foo_grad (a, b, y, z, dy, dz) => (_, db) { db = Mul (dy, dz) }", "f.txt", op_table());
  CHECK(two.inputs == 2);
  CHECK(two.outputs == 2);
  const std::vector<std::pair<std::string_view, std::string_view>> faults = {
      {"Foo (x, y, dy) => (dx) { dx = Mul (dy, y) }", "f.txt:1: 'Foo' is the name of no gradient"},
      {"_grad (x, y, dy) => (dx) { dx = Mul (dy, y) }", "'_grad' is the name of no gradient"},
      {"Foo_grad (x, dy) => (dx) { dx = Mul (dy, x) }",
       "a gradient with 1 result reads 1 input, the outputs and as many gradients of outputs; this "
       "one reads 2 in all"},
      {"Foo_grad (x) => (_, _) {}", "this one reads 1 in all"},
      {"Foo_grad (x, y, dy) => (x) {} Bar_grad (x, y, dy) => (x) {}", "holds 2 functions"}};
  for (const auto& [text, fault] : faults) {
    CAPTURE(text);
    const std::string told = refusal_of([&] { parse_gradient(text, "f.txt", op_table()); });
    CHECK_MESSAGE(contains(told, fault), told);
  }
}

TEST_CASE("gradient functions: the newest one that a model's version allows") {
  const UserGradients gradients(
      "Foo_grad (x, y, dy) => (dx) { dx = Mul (dy, x) }\n"
      "<since: 13> Foo_grad (x, y, dy) => (dx) { dx = Mul (dy, y) }\n"
      "<domain: \"com.example\"> Foo_grad (x, y, dy) => (dx) { dx = Mul (dy, y) }\n",
      "f.txt", op_table());
  CHECK(gradients.find("", "Foo", 12) == &gradients.list()[0]);
  CHECK(gradients.find("", "Foo", 13) == &gradients.list()[1]);
  CHECK(gradients.find("com.example", "Foo", 1) == &gradients.list()[2]);
  CHECK(gradients.find("", "Bar", 13) == nullptr);
  const std::string twice = refusal_of([] {
    const UserGradients both("Foo_grad (x, y, dy) => (x) {}\nFoo_grad (x, y, dy) => (dy) {}",
                             "f.txt", op_table());
  });
  CHECK_MESSAGE(contains(twice, "f.txt:2: a second gradient of Foo (the first: f.txt:1)"), twice);
}

}  // namespace trainscope::test
