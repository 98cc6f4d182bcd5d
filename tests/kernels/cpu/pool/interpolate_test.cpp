// Weighted sums along an axis, with columns and with single elements, over several threads.
#include <doctest/doctest.h>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;
using I64 = std::vector<std::int64_t>;

TensorType f32(Shape shape) { return {.dtype = DType::kF32, .shape = shape}; }

OpCall call_of(std::string_view op, int axis, const Literal& x, const Shape& y) {
  return {.op = op,
          .params = AxisParams{.axis = axis},
          .inputs = {x, Literal::of<std::int64_t>(Shape{2, 2}, {0, 2, 1, 1}),
                     Literal::of<float>(Shape{2, 2}, {1, 10, 2, 3})},
          .outputs = {f32(y)}};
}

Literal random_literal(const Shape& shape) {
  F32 values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<float>(random_normal(5, 1, static_cast<std::uint64_t>(i))));
  }
  return Literal::of(shape, values);
}

}  // namespace

TEST_CASE("interpolate: along rows, along columns, with an offset") {
  const Literal x = Literal::of<float>(Shape{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(call(call_of("Interpolate", 0, x, {2, 3}))[0].values<float>() ==
        F32{71, 82, 93, 20, 25, 30});
  OpCall columns = call_of("Interpolate", 1, x, {3, 2});
  CHECK(call(columns)[0].values<float>() == F32{31, 10, 64, 25, 97, 40});
  columns.inputs.push_back(Literal::of<float>(Shape{2}, {1000, 0}));
  CHECK(call(columns)[0].values<float>() == F32{1031, 10, 1064, 25, 1097, 40});
}

TEST_CASE("interpolate: the gradient goes back to every place that was read") {
  const Literal dy = Literal::of<float>(Shape{2, 2}, {1, 2, 3, 4});
  CHECK(call(call_of("InterpolateGrad", 0, dy, {3, 2}))[0].values<float>() ==
        F32{1, 2, 15, 20, 10, 20});
  CHECK(call(call_of("InterpolateGrad", 1, dy, {2, 3}))[0].values<float>() ==
        F32{1, 10, 10, 3, 20, 30});
}

TEST_CASE("interpolate: the bits of the gradient do not depend on the number of threads") {
  for (const Shape& dy : {Shape{1, 2, 900}, Shape{90000, 2, 1}}) {
    Shape dx = dy;
    dx[1] = 3;
    OpCall gradient = call_of("InterpolateGrad", 1, random_literal(dy), dx);
    const std::vector<std::byte> expected = call(gradient)[0].bytes;
    for (int threads : {2, 3, 4}) {
      gradient.threads = threads;
      CHECK(call(gradient)[0].bytes == expected);
    }
  }
}

}  // namespace trainscope::cpu
