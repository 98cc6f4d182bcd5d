// Node-by-node execution: kernels, views, decompositions, and what it refuses.
#include "engine/exec/reference.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"

namespace trainscope {
namespace {

Tensor floats(Shape shape, std::vector<float> values) { return Tensor::of<float>(shape, values); }

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

// x [2,2] -> Dropout (composite) -> Reshape [4] (view) -> Mul by a parameter.
struct Example {
  OpTable ops = standard_ops();
  Evaluate evaluate = evaluator(ops, cpu_kernels());
  Graph graph;
  Builder b{graph, ops};
  ValueId y = kNoValue;

  Example() {
    b.set_provenance({.sources = {"test"}, .pass = "test"});
    const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2, 2}});
    const ValueId same = b.multi("Dropout", {x}, 2).front();
    Value scale;
    scale.name = "scale";
    scale.type = {.dtype = DType::kF32, .shape = {4}};
    scale.kind = ValueKind::kParameter;
    scale.data = std::make_shared<const Tensor>(floats({4}, {1, 10, 100, 1000}));
    y = b("Mul", {b.reshape(same, {4}), graph.add_value(std::move(scale))});
  }
};

}  // namespace

TEST_CASE("reference_run: computes composite ops and views, takes initial elements of parameters") {
  const Example example;
  const ReferenceValues values =
      reference_run(example.graph, {{"x", floats({2, 2}, {1, 2, 3, 4})}}, example.evaluate);
  CHECK(values_of(values.at(example.y)) == std::vector<float>{1, 20, 300, 4000});
  CHECK(values_of(values.at("x")) == std::vector<float>{1, 2, 3, 4});
}

// A value that only a view reads is moved there; one that something else reads too is copied.
TEST_CASE("reference_run: shown one by one, values are those of a run that keeps all") {
  Example example;
  Builder& b = example.b;
  const ValueId x = example.graph.find("x");
  const ValueId once = b("Neg", {x});
  const ValueId back = b.reshape(b.reshape(once, {4}), {2, 2});
  const ValueId twice = b("Neg", {back});
  const ValueId y = b("Mul", {b.reshape(twice, {4}), b.reshape(b("Neg", {twice}), {4})});
  const std::map<std::string, Tensor> inputs = {{"x", floats({2, 2}, {1, 2, 3, 4})}};
  const ReferenceValues kept = reference_run(example.graph, inputs, example.evaluate);
  CHECK(values_of(kept.at(y)) == std::vector<float>{-1, -4, -9, -16});
  std::size_t seen = 0;
  reference_run(example.graph, inputs, example.evaluate, [&](ValueId id, const Tensor& tensor) {
    REQUIRE(tensor.type() == kept.at(id).type());
    const Tensor& want = kept.at(id);
    CHECK(std::equal(tensor.data(), tensor.data() + tensor.bytes(), want.data()));
    ++seen;
  });
  CHECK(seen >= 8);
}

TEST_CASE("reference_run: a parameter may be given other elements") {
  const Example example;
  const ReferenceValues values = reference_run(
      example.graph, {{"x", floats({2, 2}, {1, 2, 3, 4})}, {"scale", floats({4}, {0, 0, 0, 1})}},
      example.evaluate);
  CHECK(values_of(values.at(example.y)) == std::vector<float>{0, 0, 0, 4});
}

TEST_CASE("reference_run: names the input that is missing or of another type") {
  const Example example;
  CHECK_THROWS_WITH_AS(reference_run(example.graph, {}, example.evaluate),
                       "input 'x' (f32[2,2]) is not given", Error);
  CHECK_THROWS_WITH_AS(
      reference_run(example.graph, {{"x", floats({4}, {1, 2, 3, 4})}}, example.evaluate),
      "'x' is f32[4], expected f32[2,2]", Error);
}

TEST_CASE("reference_run: a node without kernel is named") {
  const OpTable ops = standard_ops();
  const KernelTable none;
  Graph graph;
  Builder b(graph, ops);
  b("Neg", {b.input("x", {.dtype = DType::kF32, .shape = {1}})});
  CHECK_THROWS_WITH_AS(reference_run(graph, {{"x", floats({1}, {1})}}, evaluator(ops, none)),
                       "no kernel for Neg in node 'Neg' (f32[1])", Error);
}

TEST_CASE("choose_kernel: the last one added that supports the case, or the first") {
  KernelTable table;
  table.add("Op", DType::kF32, {.name = "first"});
  table.add("Op", DType::kF32, {.name = "second"});
  table.add("Op", DType::kF32,
            {.name = "picky", .supports = [](const PrepareArgs&) -> Support { return {"never"}; }});
  table.add("Conv", DType::kF32, {.name = "direct"});
  table.add("Conv", DType::kF32, {.name = "winograd", .transforms = true});
  const Params params;
  const PrepareArgs args{.params = params, .inputs = {}, .outputs = {}};
  const auto chosen = [&](KernelChoice choice, std::string_view op, DType dtype) {
    return choose_kernel(table, {.op = op, .dtype = dtype, .args = args, .choice = choice}).kernel;
  };
  const auto name = [&](KernelChoice choice, std::string_view op = "Op") {
    return chosen(choice, op, DType::kF32)->name;
  };
  CHECK(name(KernelChoice::kFastest) == "second");
  CHECK(name(KernelChoice::kReference) == "first");
  CHECK(name(KernelChoice::kDirect) == "second");
  CHECK(name(KernelChoice::kFastest, "Conv") == "winograd");
  CHECK(name(KernelChoice::kDirect, "Conv") == "direct");
  CHECK(chosen(KernelChoice::kFastest, "Op", DType::kF64) == nullptr);
}

TEST_CASE("evaluator: what the builder knows at compile time is computed while it builds") {
  const OpTable ops = standard_ops();
  const Evaluate evaluate = evaluator(ops, cpu_kernels());
  Graph graph;
  Builder b(graph, ops);
  b.set_evaluate(&evaluate);
  const ValueId sum = b("Add", {b.ints({1, 2}), b.ints({10, 20})});
  REQUIRE(graph.value(sum).data != nullptr);
  CHECK(as_ints(*graph.value(sum).data) == Ints{11, 22});
}

}  // namespace trainscope
