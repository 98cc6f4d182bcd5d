// Functions as text: what is read, and what each fault is called.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/compile.h"
#include "engine/functions/function_text.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::string fault_of(std::string_view text) {
  return refusal_of([&] {
    for (const FunctionText& function : parse_functions(text, "f.txt")) {
      check_ops(function, op_table());
    }
  });
}

}  // namespace

TEST_CASE("functions: a text holds several, each with a header, attributes and nodes") {
  const std::vector<FunctionText> functions = parse_functions(
      "# comments end with their line\n"
      "<domain: \"com.example\", since: 13, opset_import: [\"\" : 17]>\n"
      "Foo <alpha: float = 1, axis> (x, w) => (y, _) {\n"
      "  t = Softmax <axis: int = @axis> (x)\n"
      "  c = Constant <value = float[2] {0.5, -1e3}> ()\n"
      "  y, \"\" = com.example.Bar (t, \"\", c) <mode = \"a \\\"b\\\"\", list = [1, 2]>;\n"
      "}\n"
      "Empty (x) => (x) {}\n",
      "f.txt");
  REQUIRE(functions.size() == 2);
  const FunctionText& foo = functions[0];
  CHECK(foo.name == "Foo");
  CHECK(foo.domain == "com.example");
  CHECK(foo.since == 13);
  CHECK(foo.where == "f.txt:2");
  CHECK(foo.inputs == std::vector<std::string>{"x", "w"});
  CHECK(foo.outputs == std::vector<std::string>{"y", "_"});
  REQUIRE(foo.attributes.size() == 2);
  CHECK(std::get<double>(foo.attributes[0].absent.value()) == 1.0);
  CHECK_FALSE(foo.attributes[1].absent.has_value());
  REQUIRE(foo.nodes.size() == 3);
  CHECK(foo.nodes[0].attributes[0].reference == "axis");
  const auto constant = std::get<SharedTensor>(foo.nodes[1].attributes[0].value.value());
  CHECK(constant->values<float>()[1] == -1000.0F);
  CHECK(foo.nodes[2].domain == "com.example");
  CHECK(foo.nodes[2].inputs == std::vector<std::string>{"t", "", "c"});
  CHECK(foo.nodes[2].outputs == std::vector<std::string>{"y", ""});
  CHECK(std::get<std::string>(foo.nodes[2].attributes[0].value.value()) == "a \"b\"");
  CHECK(std::get<Ints>(foo.nodes[2].attributes[1].value.value()) == Ints{1, 2});
  CHECK(foo.nodes[2].line == 6);
  CHECK(functions[1].outputs == std::vector<std::string>{"x"});
}

TEST_CASE("functions: whole numbers keep all 64 bits") {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;  // no double has it
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const FunctionText function =
      parse_functions(fmt::format("F <a = {0}, b = [{1}, {0}], c: floats = [{0}], d = [1, 0.5], "
                                  "e: float = 9223372036854775808> (x) => (y) {{\n"
                                  "  y = Constant <value = int64[2] {{{0}, {1}}}> ()\n}}\n",
                                  kOdd, kLeast),
                      "f.txt")
          .front();
  const auto value = [&](std::size_t i) { return function.attributes.at(i).absent.value(); };
  CHECK(std::get<std::int64_t>(value(0)) == kOdd);
  CHECK(std::get<Ints>(value(1)) == Ints{kLeast, kOdd});
  CHECK(std::get<Floats>(value(2)) == Floats{static_cast<double>(kOdd)});
  CHECK(std::get<Floats>(value(3)) == Floats{1.0, 0.5});
  CHECK(std::get<double>(value(4)) == 9223372036854775808.0);
  const auto constant = std::get<SharedTensor>(function.nodes.at(0).attributes.at(0).value.value());
  CHECK(constant->values<std::int64_t>()[0] == kOdd);
  CHECK(constant->values<std::int64_t>()[1] == kLeast);
}

TEST_CASE("functions: a fault is told with file and line") {
  const std::vector<std::pair<std::string_view, std::string_view>> faults = {
      {"", "f.txt holds no function"},
      {"F (x) => (y) {\n y = Exp (x)\n", "f.txt:3: the text ends where the name of a value was"},
      {"F (x) => (y) {\n}", "f.txt:2: the result 'y' is not made"},
      {"F (x) => (y) {\n a = Exp (b)\n b = Exp (a)\n y = Exp (b) }",
       "f.txt:2: 'b' is read before anything makes it"},
      {"F (x) => (y) {\n y = Exp (x)\n y = Exp (x) }", "f.txt:3: 'y' is made twice"},
      {"F (x, x) => (x) {}", "f.txt:1: 'x' is made twice"},
      {"F (x) => (_) {\n _ = Exp (x) }", "'_' stands for no result"},
      {"F (x) => (y) {\n y = Exq (x) }", "f.txt:2: there is no op Exq"},
      {"F (x) => (y) {\n y = com.example.Exp (x) }", "there is no op com.example.Exp"},
      {"F (x) => (y) { y = Mul (x) }", "f.txt:1: Mul has 1 inputs, 2 expected"},
      {"F (x) => (y) { y, z = Exp (x) }", "Exp has 2 outputs, 1 expected"},
      {"F (x) => (y) { y = Softmax <axes = 1> (x) }", "Softmax has no attribute 'axes'"},
      {"F (x) => (y) { y = Softmax <axis = @a> (x) }", "the function declares no attribute 'a'"},
      {"F <a, a> (x) => (x) {}", "attribute 'a' is given twice"},
      {"F <a: real = 1> (x) => (x) {}", "there is no type 'real'"},
      {"F <a: int = 1.5> (x) => (x) {}", "expected a whole number, not '1.5'"},
      {"F <a = 1.2.3> (x) => (x) {}", "'1.2.3' is no number"},
      {"F <a = 9223372036854775808> (x) => (x) {}",
       "f.txt:1: '9223372036854775808' is no whole number of 64 bits"},
      {"F <a = [1, -9223372036854775809]> (x) => (x) {}", "is no whole number of 64 bits"},
      {"F <a: ints = [1, 0.5]> (x) => (x) {}", "expected a whole number, not '0.5'"},
      {"F (x) => (y) { y = Constant <value = int64 {9223372036854775808}> () }",
       "is no whole number of 64 bits"},
      {"F (x) => (y) { y = Constant <value = int64 {0.5}> () }", "expected a whole number"},
      {"F (x) => (y) { y = Constant <value = int32 {2147483648}> () }",
       "expected an element of i32, a whole number from -2147483648 to 2147483647"},
      {"F (x) => (y) { y = Constant <value = bool {2}> () }", "expected an element of bool"},
      {"F (x) => (y) { y = Constant (x) }", "a Constant has no inputs, one output"},
      {"F (x) => (y) { y = Constant <value = half {1}> () }", "there is no type 'half' here"},
      {"F (x) => (y) { y = Constant <value = float[3] {1, 2}> () }", "a tensor [3] has 2 elements"},
      {"F (x) => (y) { y = Constant <value = float[65536,65536,65536,65536] {}> () }",
       "has 0 elements"},
      {"F (x) => (x) $", "f.txt:1: '$' means nothing here"},
      {"F <a = \"b\n\"> (x) => (x) {}", "f.txt:1: a text in quotes does not end in its line"},
      {"<opset: 3> F (x) => (x) {}", "there is no key 'opset'"},
      {"<opset_import: [\"\" : 13]> F (x) => (x) {}", "ONNX's ops of opset 17, not of 13"},
      {"<since: 0> F (x) => (x) {}", "expected a version of the domain, a whole number from 1"},
      {"F (x) -> (x) {}", "expected '=>', not '-'"}};
  for (const auto& [text, fault] : faults) {
    CAPTURE(text);
    const std::string told = fault_of(text);
    CHECK_MESSAGE(contains(told, fault), told);
  }
}

TEST_CASE("functions: values of attributes become part of the text") {
  const FunctionText function =
      parse_functions("F <a: float = 1.0, b = [1], c = \"x\", d> (x) => (x) {}", "f.txt").front();
  const std::string text = text_with(
      function,
      {{"a", 3.0}, {"b", Ints{4, 5}}, {"c", std::string("q\"")}, {"other", std::int64_t{1}}});
  CHECK(text == "F <a: float = 3.0, b: ints = [4, 5], c: string = \"q\\\"\", d> (x) => (x) {}");
  const FunctionText again = parse_functions(text, "again").front();
  CHECK(std::get<double>(again.attributes[0].absent.value()) == 3.0);
  CHECK(std::get<std::string>(again.attributes[2].absent.value()) == "q\"");
}

}  // namespace trainscope::test
