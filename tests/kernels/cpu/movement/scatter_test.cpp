// Places named by indices, and rows scattered to them: outside, in place, over several threads.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;
using I64 = std::vector<std::int64_t>;

F32 random_numbers(std::int64_t count, std::uint64_t stream) {
  F32 values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random_normal(5, stream, static_cast<std::uint64_t>(i))));
  }
  return values;
}

I64 random_places(std::int64_t count, std::int64_t bound) {
  I64 values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place =
        random_below(5, 9, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(bound));
    values.push_back(static_cast<std::int64_t>(place));
  }
  return values;
}

OpCall scatter_call(std::string_view op, const Shape& rows, std::int64_t count) {
  const Shape updates{count, rows[1]};
  return {.op = op,
          .inputs = {Literal::of(rows, random_numbers(rows.elements(), 1)),
                     Literal::of(Shape{count}, random_places(count, rows[0])),
                     Literal::of(updates, random_numbers(updates.elements(), 2))},
          .outputs = {{.dtype = DType::kF32, .shape = rows}}};
}

void check_same_bits(OpCall call_on_one_thread) {
  const std::vector<std::byte> expected = call(call_on_one_thread)[0].bytes;
  for (int threads : {2, 3, 4}) {
    call_on_one_thread.threads = threads;
    CHECK(call(call_on_one_thread)[0].bytes == expected);
  }
}

}  // namespace

TEST_CASE("scatter: ElementIndex gives flat places, and the number of elements for one outside") {
  const OpCall elements{.op = "ElementIndex",
                        .key = DType::kI32,
                        .params = AxisParams{.axis = 0},
                        .inputs = {Literal::of<std::int32_t>(Shape{2, 3}, {2, -1, 0, 3, -4, 1}),
                                   Literal::of<std::int64_t>(Shape{2}, {3, 4})},
                        .outputs = {{.dtype = DType::kI64, .shape = Shape{2, 3}}}};
  CHECK(call(elements)[0].values<std::int64_t>() == I64{8, 9, 2, 12, 12, 6});
}

TEST_CASE("scatter: SliceIndex counts slices within their batch") {
  const OpCall slices{.op = "SliceIndex",
                      .key = DType::kI64,
                      .params = AxisParams{.axis = 1},
                      .inputs = {Literal::of<std::int64_t>(Shape{2, 2, 1}, {2, 0, -1, 3}),
                                 Literal::of<std::int64_t>(Shape{3}, {2, 3, 5})},
                      .outputs = {{.dtype = DType::kI64, .shape = Shape{2, 2}}}};
  CHECK(call(slices)[0].values<std::int64_t>() == I64{2, 0, 5, 6});
}

TEST_CASE("scatter: rows come in the order of the index") {
  OpCall rows{.op = "PutRows",
              .inputs = {Literal::of<float>(Shape{2, 2}, {1, 2, 3, 4}),
                         Literal::of<std::int64_t>(Shape{3}, {1, 0, 1}),
                         Literal::of<float>(Shape{3, 2}, {10, 20, 30, 40, 50, 60})},
              .outputs = {{.dtype = DType::kF32, .shape = Shape{2, 2}}}};
  CHECK(call(rows)[0].values<float>() == F32{30, 40, 50, 60});
  rows.op = "AddRows";
  CHECK(call(rows)[0].values<float>() == F32{31, 42, 63, 84});
  rows.op = "MultiplyRows";
  CHECK(call(rows)[0].values<float>() == F32{30, 80, 1500, 4800});
  rows.inputs[1] = Literal::of<std::int64_t>(Shape{3}, {1, 0, 2});
  for (float y : call(rows)[0].values<float>()) CHECK(std::isnan(y));
}

TEST_CASE("scatter: integers wrap around, and ignore an index outside") {
  const OpCall rows{.op = "AddRows",
                    .key = DType::kI32,
                    .inputs = {Literal::of<std::int32_t>(Shape{1, 1}, {2147483647}),
                               Literal::of<std::int64_t>(Shape{2}, {0, -1}),
                               Literal::of<std::int32_t>(Shape{2, 1}, {1, 5})},
                    .outputs = {{.dtype = DType::kI32, .shape = Shape{1, 1}}}};
  CHECK(call(rows)[0].values<std::int32_t>() == std::vector<std::int32_t>{-2147483647 - 1});
}

TEST_CASE("scatter: an index outside makes floats of every width NaN") {
  const std::vector<BFloat16> data(3, BFloat16(1.0F));
  const OpCall put{
      .op = "PutRows",
      .key = DType::kBF16,
      .inputs = {Literal::of<BFloat16>(Shape{3, 1}, data), Literal::of<std::int64_t>(Shape{1}, {3}),
                 Literal::of<BFloat16>(Shape{1, 1}, {BFloat16(2.0F)})},
      .outputs = {{.dtype = DType::kBF16, .shape = Shape{3, 1}}}};
  for (const BFloat16 x : call(put)[0].values<BFloat16>()) CHECK(std::isnan(float{x}));
}

TEST_CASE("scatter: the bits do not depend on the number of threads") {
  // Divided by columns and by rows.
  for (const Shape& rows : {Shape{17, 300}, Shape{900, 3}}) {
    check_same_bits(scatter_call("AddRows", rows, 5000));
    OpCall products = scatter_call("MultiplyRowsGrad", rows, 5000);
    products.outputs[0].shape = Shape{5000, rows[1]};
    check_same_bits(products);
  }
}

}  // namespace trainscope::cpu
