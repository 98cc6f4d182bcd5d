// The room that a file of tensors asks for in loops, and when it asks for none.
#include "cli/data/longest_trips.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/core/safetensors.h"
#include "engine/model_sizes.h"
#include "engine/onnx/import.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kExamples = 6;

// A state that goes through tanh so many times; `count` makes n, and go, from the inputs.
std::string text_of(const std::string& inputs, const std::string& count,
                    const std::string& trips_and_condition, const std::string& parameters = "") {
  return fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,3] x{}) => (float[N,3] y) <float[3,3] "
      "w = {{0.1,0.9,0.2,0.8,0.3,0.1,0.2,0.4,0.7}}{}> {{ {} y = Loop <body = b (int64 i, bool c, "
      "float[N,3] p) => (bool d, float[N,3] q) {{ d = Identity(c) m = MatMul(p, w) q = Tanh(m) }}> "
      "({}, x) }}",
      inputs, parameters, count, trips_and_condition);
}

Tensor numbers(const Shape& shape, const std::vector<std::int64_t>& list) {
  return Tensor::of<std::int64_t>(shape, list);
}

struct Data {
  std::string name;
  Tensor tensor;
};

// Batches of two.
std::optional<std::int64_t> room(const std::string& text, const std::vector<Data>& data,
                                 const SizeRequest& request = {.batch = 2, .shapes = {}}) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (const Data& each : data)
    tensors.push_back({.name = each.name, .tensor = each.tensor.view()});
  write_safetensors(folder / "data.safetensors", tensors);
  const OnnxModel model = OnnxModel::parse_text(text);
  const Sizes sizes = resolve_sizes(model, request);
  ImportOptions import{.dims = sizes.dims};
  resolve_max_trips(model, fmt::format("tensors:{}", (folder / "data.safetensors").string()), sizes,
                    import);
  return import.max_trips;
}

const std::vector<std::int64_t> kLengths = {1, 2, 40, 4, 2, 9};
const std::string kLongest = "n = ReduceMax<keepdims = 0>(lengths)";
const std::string kLengthsInput = ", int64[N] lengths";

Data lengths() { return {.name = "lengths", .tensor = numbers({kExamples}, kLengths)}; }

}  // namespace

TEST_CASE("longest trips: the most that a batch counts, a last one that is not full among them") {
  const std::string text = text_of(kLengthsInput, kLongest, "n, ");
  CHECK(room(text, {lengths()}) == 40);
  CHECK(room(text, {{"lengths", numbers({3}, {1, 2, 7})}}) == 7);
}

TEST_CASE("longest trips: of several inputs, each with the axis that counts its examples") {
  const std::string text = text_of(
      ", int64[T,N] mask, int64[N] more",
      "axes = Constant<value_ints = [0]>() sums = ReduceSum<keepdims = 0>(mask, axes) all = "
      "Add(sums, more) n = ReduceMax<keepdims = 0>(all)",
      "n, ");
  SizeRequest request{.batch = 2, .shapes = {{"mask", {3, 2}}}};
  request.batch_axes.emplace("mask", 1);
  const Data mask{"mask", numbers({3, 4}, {1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1})};
  CHECK(room(text, {mask, {"more", numbers({4}, {4, 0, 1, 2})}}, request) == 6);
}

TEST_CASE("longest trips: a loop that its condition ends has no such number") {
  const std::string condition =
      kLongest + " zero = Constant<value_int = 0>() go = Greater(n, zero)";
  const std::string unlimited = condition + " all = Constant<value_int = 9223372036854775807>()";
  CHECK(room(text_of(kLengthsInput, unlimited, "all, go"), {lengths()}) == std::nullopt);
  CHECK(room(text_of(kLengthsInput, condition, "n, go"), {lengths()}) == 40);
}

TEST_CASE("longest trips: none where a parameter has a part in the count, or the file has it not") {
  const std::string learned =
      text_of("", "p = MatMul(x, w) r = ReduceMax<keepdims = 0>(p) n = Cast<to = 7>(r)", "n, ");
  const Data x{"x", Tensor({.dtype = DType::kF32, .shape = {kExamples, 3}})};
  CHECK(room(learned, {x}) == std::nullopt);
  const std::string text = text_of(kLengthsInput, kLongest, "n, ");
  CHECK(room(text, {x}) == std::nullopt);
  const Tensor narrow = convert(numbers({kExamples}, kLengths), DType::kI32);
  CHECK(room(text, {{"lengths", narrow}}) == std::nullopt);
}

// Counts over a product of the lengths with so many columns, which is 0.
std::string laborious(int columns) {
  return fmt::format(
      "size = Constant<value_ints = [256, {}]>() many = ConstantOfShape(size) f = Cast<to = "
      "1>(lengths) one = Constant<value_ints = [1]>() c = Unsqueeze(f, one) wide_size = "
      "Constant<value_ints = [1, 256]>() wide = Expand(c, wide_size) m = MatMul(wide, many) z = "
      "ReduceMax<keepdims = 0>(m) zi = Cast<to = 7>(z) l = ReduceMax<keepdims = 0>(lengths) n = "
      "Add(l, zi)",
      columns);
}

// 300 batches of 4 MFLOP are more than what one evaluator may do for a graph.
TEST_CASE("longest trips: each batch has a limit of its own, and one beyond it is no error") {
  const std::vector<std::int64_t> threes(600, 3);
  const Data many{"lengths", numbers({600}, threes)};
  CHECK(room(text_of(kLengthsInput, laborious(4096), "n, "), {many}) == 3);
  CHECK(room(text_of(kLengthsInput, laborious(1 << 17), "n, "), {lengths()}) == std::nullopt);
}

TEST_CASE("longest trips: of a loop whose count another counted loop makes there is none") {
  const std::string chained =
      kLongest +
      " none = Constant<value_int = 0>() t = Loop <body = a (int64 j, bool e, int64 s) => (bool f, "
      "int64 u) { f = Identity(e) one = Constant<value_int = 1>() u = Add(s, one) }> (n, , none)";
  CHECK(room(text_of(kLengthsInput, chained, "t, "), {lengths()}) == std::nullopt);
}

}  // namespace trainscope::test
