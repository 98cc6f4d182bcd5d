// Sums: precision, independence of the number of threads, empty axes.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

ReduceParams reduced(std::initializer_list<std::size_t> axes) {
  ReduceParams params;
  for (std::size_t axis : axes) params.reduced[axis] = true;
  return params;
}

std::vector<float> random_values(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<float>(random_normal(3, 5, static_cast<std::uint64_t>(i))));
  }
  return values;
}

}  // namespace

TEST_CASE("reduce: a long float sum keeps small terms") {
  const Shape shape{1 << 20};
  std::vector<float> x(std::size_t{1} << 20, 0x1p-12F);
  x[0] = 0x1p15F;  // adding a term to it in float would be lost in rounding
  const std::vector<Literal> y = call({.op = "ReduceSum",
                                       .params = reduced({0}),
                                       .inputs = {Literal::of(shape, x)},
                                       .outputs = {{.dtype = DType::kF32, .shape = Shape{1}}}});
  CHECK(y[0].values<float>()[0] == static_cast<float>(0x1p15 + 0x1p8 - 0x1p-12));
}

TEST_CASE("reduce: the bits do not depend on the number of threads") {
  const Shape shape{40, 30, 50};
  const std::vector<float> x = random_values(shape);
  struct Case {
    ReduceParams params;
    Shape output;
  };
  const std::vector<Case> cases{{reduced({0, 1, 2}), {1, 1, 1}},
                                {reduced({0, 1}), {1, 1, 50}},
                                {reduced({1, 2}), {40, 1, 1}},
                                {reduced({0, 2}), {1, 30, 1}},
                                {reduced({1}), {40, 1, 50}}};
  for (std::string_view op : {"ReduceSum", "ReduceL2", "ReduceProd", "ReduceMax"}) {
    for (const Case& c : cases) {
      OpCall sum{.op = op,
                 .params = c.params,
                 .inputs = {Literal::of(shape, x)},
                 .outputs = {{.dtype = DType::kF32, .shape = c.output}}};
      const std::vector<std::byte> expected = call(sum)[0].bytes;
      for (int threads : {2, 3, 5}) {
        sum.threads = threads;
        CHECK(call(sum)[0].bytes == expected);
      }
    }
  }
}

TEST_CASE("reduce: over nothing the sum is 0 and the mean NaN") {
  OpCall over_nothing{.op = "ReduceSum",
                      .params = reduced({0}),
                      .inputs = {Literal::of<float>(Shape{0, 2}, {})},
                      .outputs = {{.dtype = DType::kF32, .shape = Shape{1, 2}}}};
  CHECK(call(over_nothing)[0].values<float>() == std::vector<float>{0.0F, 0.0F});
  over_nothing.op = "ReduceMean";
  CHECK(std::isnan(call(over_nothing)[0].values<float>()[1]));
}

TEST_CASE("reduce: over nothing the extremes are infinite, the product is 1, a norm 0") {
  const auto over_nothing = [](std::string_view op) {
    return call({.op = op,
                 .params = reduced({0}),
                 .inputs = {Literal::of<float>(Shape{0, 1}, {})},
                 .outputs = {{.dtype = DType::kF32, .shape = Shape{1, 1}}}})[0]
        .values<float>()[0];
  };
  CHECK(over_nothing("ReduceMax") == -std::numeric_limits<float>::infinity());
  CHECK(over_nothing("ReduceMin") == std::numeric_limits<float>::infinity());
  CHECK(over_nothing("ReduceProd") == 1.0F);
  CHECK(over_nothing("ReduceL2") == 0.0F);
}

TEST_CASE("reduce: a NaN anywhere is the largest and the smallest element") {
  for (std::string_view op : {"ReduceMax", "ReduceMin"}) {
    for (std::size_t place : {0, 5, 16, 39}) {
      std::vector<float> x(40, 1.0F);
      x[place] = std::numeric_limits<float>::quiet_NaN();
      for (const Shape& shape : {Shape{40, 1}, Shape{20, 2}}) {
        const std::vector<Literal> y =
            call({.op = op,
                  .params = reduced({0}),
                  .inputs = {Literal::of(shape, x)},
                  .outputs = {{.dtype = DType::kF32, .shape = Shape{1, shape[1]}}}});
        const std::size_t column = place % static_cast<std::size_t>(shape[1]);
        CHECK(std::isnan(y[0].values<float>()[column]));
      }
    }
  }
}

TEST_CASE("reduce: integers are summed exactly") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const std::vector<Literal> y =
      call({.op = "ReduceSum",
            .key = DType::kI64,
            .params = reduced({1}),
            .inputs = {Literal::of<std::int64_t>(Shape{2, 2}, {big, 1, -3, 3})},
            .outputs = {{.dtype = DType::kI64, .shape = Shape{2, 1}}}});
  CHECK(y[0].values<std::int64_t>() == std::vector<std::int64_t>{big + 1, 0});
}

}  // namespace trainscope::cpu
