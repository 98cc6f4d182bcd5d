// Slices, pads, splits, triangles and permutations on small literals.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernels/cpu/support/strided_loop.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;

TensorType f32(Shape shape) { return {.dtype = DType::kF32, .shape = shape}; }

Literal counting(Shape shape) {
  F32 values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.0F);
  return Literal::of(shape, values);
}

F32 pad(PadMode mode, std::int64_t before, std::int64_t width) {
  return call({.op = "Pad",
               .params = PadParams{.before = {before}, .mode = mode},
               .inputs = {counting({4})},
               .outputs = {f32({width})}})[0]
      .values<float>();
}

}  // namespace

TEST_CASE("movement: Pad mirrors, repeats, fills and crops") {
  CHECK(pad(PadMode::kReflect, 2, 9) == F32{2, 1, 0, 1, 2, 3, 2, 1, 0});
  CHECK(pad(PadMode::kEdge, 2, 8) == F32{0, 0, 0, 1, 2, 3, 3, 3});
  CHECK(pad(PadMode::kConstant, 1, 6) == F32{0, 0, 1, 2, 3, 0});
  CHECK(pad(PadMode::kConstant, -1, 2) == F32{1, 2});
  CHECK(pad(PadMode::kEdge, -3, 4) == F32{3, 3, 3, 3});
}

TEST_CASE("movement: Pad takes the value of input 2 and pads several axes") {
  const std::vector<Literal> y =
      call({.op = "Pad",
            .params = PadParams{.before = {1, 0}},
            .inputs = {counting({2, 2}), Literal::absent(), Literal::of<float>(Shape{}, {7})},
            .outputs = {f32({3, 3})}});
  CHECK(y[0].values<float>() == F32{7, 7, 7, 0, 1, 7, 2, 3, 7});
}

TEST_CASE("movement: Slice walks backwards and SliceGrad is its reverse") {
  const SliceParams every_second_from_the_end{.start = {0, 3}, .step = {1, -2}};
  const std::vector<Literal> y = call({.op = "Slice",
                                       .params = every_second_from_the_end,
                                       .inputs = {counting({2, 4})},
                                       .outputs = {f32({2, 2})}});
  CHECK(y[0].values<float>() == F32{3, 1, 7, 5});
  const std::vector<Literal> x = call({.op = "SliceGrad",
                                       .params = every_second_from_the_end,
                                       .inputs = {y[0]},
                                       .outputs = {f32({2, 4})}});
  CHECK(x[0].values<float>() == F32{0, 1, 0, 3, 0, 5, 0, 7});
}

TEST_CASE("movement: Split finds its parts when one before them is left out") {
  const std::vector<Literal> y =
      call({.op = "Split",
            .params = AxisParams{.axis = 1},
            .inputs = {counting({2, 4}), Literal::of<std::int64_t>(Shape{3}, {2, 1, 1})},
            .outputs = {f32({2, 2}), f32({2, 1}), f32({2, 1})},
            .absent_output = 0});
  CHECK(y[1].values<float>() == F32{2, 6});
  CHECK(y[2].values<float>() == F32{3, 7});
}

TEST_CASE("movement: Concat of single columns") {
  const std::vector<Literal> y = call({.op = "Concat",
                                       .params = AxisParams{.axis = 1},
                                       .inputs = {counting({2, 1}), counting({2, 2})},
                                       .outputs = {f32({2, 3})}});
  CHECK(y[0].values<float>() == F32{0, 0, 1, 1, 2, 3});
}

TEST_CASE("movement: Trilu keeps one side of a diagonal") {
  OpCall trilu{.op = "Trilu",
               .params = TriluParams{.upper = true, .diagonal = 1},
               .inputs = {counting({2, 3})},
               .outputs = {f32({2, 3})}};
  CHECK(call(trilu)[0].values<float>() == F32{0, 1, 2, 0, 0, 5});
  trilu.params = TriluParams{.upper = false, .diagonal = -1};
  CHECK(call(trilu)[0].values<float>() == F32{0, 0, 0, 3, 0, 0});
}

TEST_CASE("movement: Transpose of every permutation of four axes") {
  const Shape shape{3, 9, 1, 10};
  const Literal x = counting(shape);
  std::vector<int> order{0, 1, 2, 3};
  do {
    PermutationParams params;
    Shape permuted = shape;
    Strides from{};
    for (std::size_t a = 0; a < 4; ++a) {
      params.permutation[a] = order[a];
      permuted.dims[a] = shape[order[a]];
      from[a] = dense_strides(shape)[static_cast<std::size_t>(order[a])];
    }
    F32 expected;
    for (std::int64_t i = 0; i < permuted[0]; ++i) {
      for (std::int64_t j = 0; j < permuted[1]; ++j) {
        for (std::int64_t k = 0; k < permuted[2]; ++k) {
          for (std::int64_t l = 0; l < permuted[3]; ++l) {
            expected.push_back(
                static_cast<float>(i * from[0] + j * from[1] + k * from[2] + l * from[3]));
          }
        }
      }
    }
    const std::vector<Literal> y =
        call({.op = "Transpose", .params = params, .inputs = {x}, .outputs = {f32(permuted)}});
    CHECK(y[0].values<float>() == expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace trainscope::cpu
