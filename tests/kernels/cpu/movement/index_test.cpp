// Gather beyond the ends, and sums of repeated indices.
#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("index: SumRowsById finds the ids in order, adds up repeated ones, skips those outside") {
  const std::vector<Literal> made =
      call({.op = "SumRowsById",
            .params = NoParams{},
            .inputs = {Literal::of<float>(Shape{5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
                       Literal::of<std::int32_t>(Shape{5}, {6, -2, 9, 1, 6}),
                       Literal::of<std::int64_t>(Shape{}, {8})},
            .outputs = {{.dtype = DType::kF32, .shape = Shape{5, 2}},
                        {.dtype = DType::kI64, .shape = Shape{5}},
                        {.dtype = DType::kI64, .shape = Shape{}}}});
  CHECK(made[0].values<float>() == F32{7, 8, 13, 16, 0, 0, 0, 0, 0, 0});
  CHECK(made[1].values<std::int64_t>() == I64{1, 6, 0, 0, 0});
  CHECK(made[2].values<std::int64_t>() == I64{2});
}

TEST_CASE("index: SumRowsById has the bits of GatherGrad's rows, on any number of threads") {
  constexpr std::int64_t kSize = 900;
  for (const Shape& shape : {Shape{3000, 96}, Shape{700, 5}, Shape{40000, 1}}) {
    F32 dy;
    I64 ids;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      dy.push_back(static_cast<float>(random_normal(1, 2, static_cast<std::uint64_t>(i))));
    }
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const std::uint64_t id = random_below(1, 3, static_cast<std::uint64_t>(i), 2 * kSize);
      ids.push_back(static_cast<std::int64_t>(id) - kSize);
    }
    const Shape dense_shape{kSize, shape[1]};
    const F32 dense = call({.op = "GatherGrad",
                            .params = AxisParams{.axis = 0},
                            .inputs = {Literal::of(shape, dy), Literal::of(Shape{shape[0]}, ids)},
                            .outputs = {{.dtype = DType::kF32, .shape = dense_shape}}})[0]
                          .values<float>();
    const std::int64_t most = std::min(kSize, shape[0]);
    OpCall sums{.op = "SumRowsById",
                .params = NoParams{},
                .inputs = {Literal::of(shape, dy), Literal::of(Shape{shape[0]}, ids),
                           Literal::of<std::int64_t>(Shape{}, {kSize})},
                .outputs = {{.dtype = DType::kF32, .shape = Shape{most, shape[1]}},
                            {.dtype = DType::kI64, .shape = Shape{most}},
                            {.dtype = DType::kI64, .shape = Shape{}}}};
    for (int threads : {1, 2, 3, 4}) {
      sums.threads = threads;
      const std::vector<Literal> made = call(sums);
      const auto count = static_cast<std::size_t>(made[2].values<std::int64_t>()[0]);
      const I64 names = made[1].values<std::int64_t>();
      const F32 rows = made[0].values<float>();
      F32 scattered(dense.size(), 0.0F);
      const auto width = static_cast<std::size_t>(shape[1]);
      for (std::size_t n = 0; n < count; ++n) {
        if (n > 0) CHECK(names[n] > names[n - 1]);
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(n * width), width,
                    scattered.begin() + names[n] * shape[1]);
      }
      CHECK(scattered == dense);
      CHECK(std::all_of(rows.begin() + static_cast<std::ptrdiff_t>(count * width), rows.end(),
                        [](float x) { return x == 0.0F; }));
    }
  }
}

}  // namespace trainscope::cpu
