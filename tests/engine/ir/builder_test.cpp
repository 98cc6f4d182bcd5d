// Builder: inferred types, refusals that name everything, values known at compile time.
#include "engine/ir/builder.h"

#include <doctest/doctest.h>

#include "engine/exec/backends.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

struct Bench {
  Graph graph;
  Builder b{graph, op_table()};
  Evaluate evaluate = evaluator(op_table(), cpu_kernels());

  Bench() { b.set_provenance({.sources = {"node"}, .pass = "test"}); }
  ValueId input(std::string_view name, Shape shape, DType dtype = DType::kF32) {
    return b.input(name, {.dtype = dtype, .shape = shape});
  }
};

}  // namespace

TEST_CASE("builder: adds nodes with inferred types, phase, provenance and made-up names") {
  Bench bench;
  bench.b.set_prefix("grad/");
  bench.b.set_phase(Phase::kBackward);
  const ValueId x = bench.input("x", {2, 3});
  const ValueId y = bench.b("MatMul", {x, bench.input("w", {3, 4})});
  const ValueId z = bench.b("MatMul", {x, bench.graph.find("w")});
  CHECK(bench.b.type(y) == TensorType{DType::kF32, Shape{2, 4}});
  CHECK(bench.graph.value(y).name == "grad/MatMul");
  CHECK(bench.graph.value(z).name == "grad/MatMul_1");
  const Node& node = bench.graph.node(bench.graph.value(y).producer);
  CHECK(node.phase == Phase::kBackward);
  CHECK(node.provenance.pass == "test");
  CHECK(node.provenance.sources == SourceNames{"node"});
  CHECK(verify(bench.graph).empty());
}

TEST_CASE("builder: several outputs are named after the first") {
  Bench bench;
  const std::vector<ValueId> halves = bench.b.multi(
      "Split", {bench.input("x", {4, 6}), bench.b.ints({2, 4})}, 2, {{"axis", std::int64_t{1}}});
  CHECK(bench.graph.value(halves[0]).name == "Split");
  CHECK(bench.graph.value(halves[1]).name == "Split:1");
  CHECK(bench.b.shape(halves[1]) == Shape{4, 4});
}

TEST_CASE("builder: inputs that do not fit are refused with op, node and every shape") {
  Bench bench;
  const ValueId a = bench.input("a", {2, 3});
  const ValueId b = bench.input("b", {4, 5});
  const std::optional<Error> error = error_of([&] { bench.b("MatMul", {a, b}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  REQUIRE(error->context().size() == 1);
  CHECK(error->context()[0] == "MatMul 'MatMul' with inputs (a f32[2,3], b f32[4,5])");
  CHECK_FALSE(error->message().empty());
  CHECK(bench.graph.node_count() == 0);
  CHECK(bench.graph.live_values().size() == 2);
}

TEST_CASE("builder: wrong numbers of inputs and outputs are refused") {
  Bench bench;
  const ValueId x = bench.input("x", {2});
  CHECK(contains(refusal_of([&] { bench.b("Add", {x}); }), "1 inputs given, 2 to 2 expected"));
  CHECK(contains(refusal_of([&] { bench.b("Relu", {x, x}); }), "2 inputs given, 1 to 1 expected"));
  CHECK(contains(refusal_of([&] { bench.b.multi("Relu", {x}, 2); }),
                 "2 outputs asked for, 1 to 1 exist"));
  CHECK(contains(refusal_of([&] {
                   bench.b("Concat", {}, {{"axis", std::int64_t{0}}});
                 }),
                 "0 inputs given, 1 to any number expected"));
  CHECK(contains(refusal_of([&] {
                   bench.b("Add", {x, kNoValue});
                 }),
                 "input 1 is required but left out"));
}

TEST_CASE("builder: what constants decide is computed while building, up to a size") {
  Bench bench;
  bench.b.set_evaluate(&bench.evaluate);
  const ValueId x = bench.input("x", {2, 3});
  const ValueId shape = bench.b("Shape", {x});
  const ValueId tail = bench.b("Shape", {x}, {{"start", std::int64_t{-1}}});
  REQUIRE(bench.graph.value(shape).data != nullptr);
  CHECK(as_ints(*bench.graph.value(shape).data) == Ints{2, 3});
  CHECK(as_ints(*bench.graph.value(tail).data) == Ints{3});
  CHECK(as_ints(*bench.graph.value(bench.b("Size", {x})).data) == Ints{6});
  const ValueId doubled = bench.b("Mul", {shape, bench.b.ints({2, 2})});
  CHECK(as_ints(*bench.graph.value(doubled).data) == Ints{4, 6});

  CHECK(bench.graph.value(bench.b("Relu", {x})).data == nullptr);  // depends on the run
  const ValueId state = bench.b.state("s", {.dtype = DType::kF32, .shape = {2}},
                                      std::make_shared<const Tensor>(floats({2}, {1, 2})));
  CHECK(bench.graph.value(bench.b("Neg", {state})).data == nullptr);  // changes with each step
  const Attributes zero;
  CHECK(bench.graph.value(bench.b("ConstantOfShape", {bench.b.ints({65536})}, zero)).data);
  CHECK_FALSE(bench.graph.value(bench.b("ConstantOfShape", {bench.b.ints({65537})}, zero)).data);
}

TEST_CASE("builder: without an evaluator nothing is known") {
  Bench bench;
  const ValueId shape = bench.b("Shape", {bench.input("x", {2, 3})});
  CHECK(bench.graph.value(shape).data == nullptr);
}

TEST_CASE("builder: random ops are never computed while building") {
  Bench bench;
  bench.b.set_evaluate(&bench.evaluate);
  const ValueId y = bench.b(
      "RandomDropout",
      {bench.b.constant(floats({2}, {1, 2})), bench.b.constant(Tensor::scalar<std::int64_t>(1))},
      {{"ratio", 0.5}});
  CHECK(bench.graph.value(y).data == nullptr);
}

TEST_CASE("builder: sum_to undoes broadcasting") {
  Bench bench;
  const ValueId x = bench.input("x", {4, 2, 3});
  CHECK(bench.b.sum_to(x, {4, 2, 3}) == x);
  CHECK(bench.b.shape(bench.b.sum_to(x, {2, 3})) == Shape{2, 3});
  CHECK(bench.b.shape(bench.b.sum_to(x, {2, 1})) == Shape{2, 1});
  CHECK(bench.b.shape(bench.b.sum_to(x, {1, 2, 3})) == Shape{1, 2, 3});
  CHECK(bench.b.shape(bench.b.sum_to(x, {})) == Shape{});
  Bench numbers;
  const ValueId y = numbers.input("y", {2, 3});
  numbers.graph.outputs.push_back(numbers.b.sum_to(y, {1, 3}));
  const Tensors sums = outputs_of(numbers.graph, {{"y", floats({2, 3}, {1, 2, 3, 10, 20, 30})}});
  CHECK(difference(sums.begin()->second, floats({1, 3}, {11, 22, 33})) == 0.0);
}

TEST_CASE("builder: a reshape to the same shape is no node") {
  Bench bench;
  const ValueId x = bench.input("x", {2, 3});
  CHECK(bench.b.reshape(x, {2, 3}) == x);
  CHECK(bench.graph.node_count() == 0);
  CHECK(bench.b.shape(bench.b.reshape(x, {3, 2})) == Shape{3, 2});
  const ValueId empty = bench.input("e", {0, 3});
  CHECK(bench.b.shape(bench.b.reshape(empty, {3, 0})) == Shape{3, 0});
}

}  // namespace trainscope::test
