// Gather beyond the ends, and sums of repeated indices.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;
using I64 = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("index: Gather counts negative indices from the end and never reads outside") {
  OpCall gather{.op = "Gather",
                .params = AxisParams{.axis = 0},
                .inputs = {Literal::of<float>(Shape{2, 2}, {1, 2, 3, 4}),
                           Literal::of<std::int64_t>(Shape{4}, {-1, 2, 0, -3})},
                .outputs = {{.dtype = DType::kF32, .shape = Shape{4, 2}}}};
  const F32 y = call(gather)[0].values<float>();
  CHECK(F32(y.begin(), y.begin() + 2) == F32{3, 4});
  CHECK(F32(y.begin() + 4, y.begin() + 6) == F32{1, 2});
  for (std::size_t i : {2, 3, 6, 7}) CHECK(std::isnan(y[i]));

  gather.key = DType::kI64;
  gather.inputs[0] = Literal::of<std::int64_t>(Shape{2, 2}, {1, 2, 3, 4});
  gather.outputs[0].dtype = DType::kI64;
  CHECK(call(gather)[0].values<std::int64_t>() == I64{3, 4, 0, 0, 1, 2, 0, 0});
}

TEST_CASE("index: GatherGrad adds up repeated indices and skips those outside") {
  const std::vector<Literal> dx =
      call({.op = "GatherGrad",
            .params = AxisParams{.axis = 0},
            .inputs = {Literal::of<float>(Shape{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                       Literal::of<std::int32_t>(Shape{4}, {1, -2, 9, 1})},
            .outputs = {{.dtype = DType::kF32, .shape = Shape{3, 2}}}});
  CHECK(dx[0].values<float>() == F32{0, 0, 11, 14, 0, 0});
}

TEST_CASE("index: GatherGrad adds to a sum, which stays as it is elsewhere") {
  OpCall scatter{.op = "GatherGrad",
                 .params = AxisParams{.axis = 0},
                 .inputs = {Literal::of<float>(Shape{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                            Literal::of<std::int32_t>(Shape{4}, {1, -2, 9, 1}),
                            Literal::of<float>(Shape{3, 2}, {10, 20, 30, 40, 50, 60})},
                 .outputs = {{.dtype = DType::kF32, .shape = Shape{3, 2}}}};
  CHECK(call(scatter)[0].values<float>() == F32{10, 20, 41, 54, 50, 60});
  scatter.inputs[2] = Literal::absent();
  CHECK(call(scatter)[0].values<float>() == F32{0, 0, 11, 14, 0, 0});
}

TEST_CASE("index: the bits of GatherGrad do not depend on the number of threads") {
  struct Case {
    Shape dy;
    Shape dx;
    int axis;
  };
  // Divided by columns, by rows and by outer places.
  for (const Case& c : {Case{{3000, 256}, {17, 256}, 0}, Case{{90000}, {1000}, 0},
                        Case{{20, 3000, 2}, {20, 17, 2}, 1}}) {
    F32 dy;
    I64 indices;
    for (std::int64_t i = 0; i < c.dy.elements(); ++i) {
      dy.push_back(static_cast<float>(random_normal(1, 2, static_cast<std::uint64_t>(i))));
    }
    const auto bound = static_cast<std::uint64_t>(c.dx[c.axis]);
    for (std::int64_t i = 0; i < c.dy[c.axis]; ++i) {
      const std::uint64_t index = random_below(1, 3, static_cast<std::uint64_t>(i), bound);
      indices.push_back(static_cast<std::int64_t>(index));
    }
    OpCall scatter{.op = "GatherGrad",
                   .params = AxisParams{.axis = c.axis},
                   .inputs = {Literal::of(c.dy, dy), Literal::of(Shape{c.dy[c.axis]}, indices)},
                   .outputs = {{.dtype = DType::kF32, .shape = c.dx}}};
    F32 sum;
    for (std::int64_t i = 0; i < c.dx.elements(); ++i) {
      sum.push_back(static_cast<float>(random_normal(1, 4, static_cast<std::uint64_t>(i))));
    }
    for (bool into_sum : {false, true}) {
      if (into_sum) scatter.inputs.push_back(Literal::of(c.dx, sum));
      scatter.threads = 1;
      const std::vector<std::byte> expected = call(scatter)[0].bytes;
      for (int threads : {2, 3, 4}) {
        scatter.threads = threads;
        CHECK(call(scatter)[0].bytes == expected);
      }
    }
  }
}

}  // namespace trainscope::cpu
