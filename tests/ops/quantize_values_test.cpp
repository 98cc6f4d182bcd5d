// Quantized tensors and their products on small literals, and the gradients of FakeQuantize.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Tensor f32(const Shape& shape, std::initializer_list<double> values) {
  return convert(f64(shape, values), DType::kF32);
}
Tensor of(DType dtype, const Shape& shape, std::initializer_list<std::int64_t> values) {
  return convert(i64(shape, values), dtype);
}
Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

struct FakeQuantizeGradients {
  Numbers y, dx, ds;
};

// Of FakeQuantize in f32, by x and its scale.
FakeQuantizeGradients gradients(const Tensor& x, const Tensor& scale, const Tensor& zero,
                                const Tensor& dy, Attributes attributes) {
  const OpTable ops = standard_ops();
  const Evaluate evaluate = evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {}, .pass = "test"});
  b.set_evaluate(&evaluate);
  const ValueId y =
      b("FakeQuantize", {b.input("x", x.type()), b.input("scale", scale.type()), b.constant(zero)},
        std::move(attributes));
  const std::vector<ValueId> dx =
      backward(b, graph.value(y).producer, {b.input("dy", dy.type())}, {true, true, false});
  const ReferenceValues values =
      reference_run(graph, {{"x", x}, {"scale", scale}, {"dy", dy}}, evaluate);
  return {numbers(values.at(y)), numbers(values.at(dx[0])), numbers(values.at(dx[1]))};
}

void check_close(const Numbers& got, const Numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("QuantizeLinear: ties go to the even integer, what is beyond to the limits") {
  const Tensor x = f32({6}, {0.5, 1.5, -0.5, -300.0, 300.0, 1.25});
  CHECK(run({"QuantizeLinear", {x, f32({}, {1}), of(DType::kU8, {}, {1})}}) ==
        Numbers{1, 3, 1, 0, 255, 2});
  CHECK(run({"QuantizeLinear", {x, f32({}, {1}), of(DType::kI8, {}, {0})}}) ==
        Numbers{0, 2, 0, -128, 127, 1});
  CHECK(run({"QuantizeLinear", {x, f32({}, {1})}, {{"output_dtype", std::int64_t{22}}}}) ==
        Numbers{0, 2, 0, -8, 7, 1});
}

TEST_CASE("QuantizeLinear: scales for an axis and for blocks of one") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(run({"QuantizeLinear", {x, f32({3}, {1, 2, 3})}}) == Numbers{1, 1, 1, 4, 2, 2});
  CHECK(run({"QuantizeLinear", {x, f32({2}, {1, 2})}, {{"axis", std::int64_t{0}}}}) ==
        Numbers{1, 2, 3, 2, 2, 3});
  CHECK(
      run({"QuantizeLinear", {x, f32({2, 2}, {1, 2, 4, 8})}, {{"block_size", std::int64_t{2}}}}) ==
      Numbers{1, 2, 2, 1, 1, 1});
}

TEST_CASE("DequantizeLinear: zero points and scales") {
  const Tensor q = of(DType::kU8, {2, 3}, {1, 2, 3, 4, 5, 255});
  CHECK(run({"DequantizeLinear", {q, f32({}, {0.5}), of(DType::kU8, {}, {2})}}) ==
        Numbers{-0.5, 0, 0.5, 1, 1.5, 126.5});
  CHECK(run({"DequantizeLinear", {q, f32({3}, {1, 2, 3}), of(DType::kU8, {3}, {1, 2, 3})}}) ==
        Numbers{0, 0, 0, 3, 6, 756});
  CHECK(run({"DequantizeLinear", {of(DType::kI4, {3}, {-8, 0, 7}), f32({}, {2})}}) ==
        Numbers{-16, 0, 14});
}

TEST_CASE("QuantizeLinear, DequantizeLinear: what does not fit is refused") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(run({"QuantizeLinear", {x, f32({2}, {1, 2})}}), Error);
  CHECK_THROWS_AS(run({"QuantizeLinear", {x, f32({}, {1})}, {{"output_dtype", std::int64_t{7}}}}),
                  Error);
  CHECK_THROWS_AS(
      run({"QuantizeLinear", {x, f32({2, 1}, {1, 2})}, {{"block_size", std::int64_t{2}}}}), Error);
  CHECK_THROWS_AS(
      run({"DequantizeLinear", {of(DType::kU8, {1}, {1}), f32({}, {1}), of(DType::kI8, {}, {1})}}),
      Error);
}

TEST_CASE("MatMulInteger: zero points of rows and columns") {
  const Tensor a = of(DType::kU8, {2, 2}, {1, 2, 255, 0});
  const Tensor b = of(DType::kI8, {2, 2}, {-128, 1, 3, 127});
  CHECK(run({"MatMulInteger", {a, b}}) == Numbers{-122, 255, -32640, 255});
  CHECK(run({"MatMulInteger", {a, b, of(DType::kU8, {2}, {1, 5}), of(DType::kI8, {2}, {3, 0})}}) ==
        Numbers{0, 127, -32750, -385});
}

// The numbers are PyTorch's, of torch._fake_quantize_learnable_per_tensor_affine with a factor
// of 1.
TEST_CASE("FakeQuantize: gradients by x and by a trained scale, as PyTorch's") {
  const Tensor x = f32({7}, {-3, -0.53, -0.22, 0.04, 0.31, 0.97, 2});
  const Tensor dy = f32({7}, {1, -2, 0.5, 3, -1, 0.25, 2});
  const FakeQuantizeGradients got =
      gradients(x, f32({1}, {0.1}), f32({1}, {5}), dy, {{"least", 0.0}, {"greatest", 15.0}});
  check_close(got.y, Numbers{-0.5, -0.5, -0.2, 0, 0.30000001, 1, 1});
  check_close(got.dx, Numbers{0, -2, 0.5, 3, -1, 0.25, 0});
  check_close(got.ds, Numbers{13.475});
}

// The same of torch._fake_quantize_learnable_per_channel_affine.
TEST_CASE("FakeQuantize: a trained scale for each index of an axis") {
  const Tensor x = f32({2, 3}, {-3, -0.53, 0.22, 0.04, 0.31, 2});
  const Tensor dy = f32({2, 3}, {1, -2, 0.5, 3, -1, 0.25});
  const FakeQuantizeGradients got =
      gradients(x, f32({3}, {0.1, 0.2, 0.3}), f32({3}, {5, 4, 0}), dy,
                {{"least", 0.0}, {"greatest", 15.0}, {"axis", std::int64_t{1}}});
  check_close(got.y, Numbers{-0.5, -0.60000002, 0.30000001, 0, 0.40000001, 2.1000001});
  check_close(got.dx, Numbers{0, -2, 0.5, 3, -1, 0.25});
  check_close(got.ds, Numbers{-6.1999998, 0.25000039, 0.21666676});
}

}  // namespace trainscope::test
