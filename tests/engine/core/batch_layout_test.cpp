// Examples in batches whose batch axis is not the first.
#include "engine/core/batch_layout.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "engine/core/tensor.h"

namespace trainscope::test {

TEST_CASE("batch layout: an example along axis 1 is every other piece") {
  // [times 2, examples 3, numbers 2]
  Tensor batch({.dtype = DType::kF32, .shape = {2, 3, 2}});
  std::iota(batch.values<float>().begin(), batch.values<float>().end(), 0.0F);
  const BatchLayout layout(batch.type(), 1);
  CHECK(layout.pieces() == 2);
  CHECK(layout.piece_elements() == 2);
  CHECK(layout.row_bytes() == 16);
  CHECK(layout.place(2, 1) == 10);
  Tensor row({.dtype = DType::kF32, .shape = {2, 2}});
  const auto numbers = [&row] {
    return std::vector<float>(row.values<float>().begin(), row.values<float>().end());
  };
  layout.read_row(batch.data(), 1, row.data());
  CHECK(numbers() == std::vector<float>{2, 3, 8, 9});
  layout.write_row(row.data(), 0, batch.data());
  layout.clear_row(2, batch.data());
  const std::vector<float> all(batch.values<float>().begin(), batch.values<float>().end());
  CHECK(all == std::vector<float>{2, 3, 2, 3, 0, 0, 8, 9, 8, 9, 0, 0});
}

TEST_CASE("batch layout: along the first axis an example is one piece") {
  Tensor batch({.dtype = DType::kI64, .shape = {2, 3}});
  std::iota(batch.values<std::int64_t>().begin(), batch.values<std::int64_t>().end(), 0);
  const BatchLayout layout(batch.type(), 0);
  CHECK(layout.pieces() == 1);
  std::int64_t row[3] = {};
  std::byte bytes[sizeof row];
  layout.read_row(batch.data(), 1, bytes);
  std::memcpy(row, bytes, sizeof row);
  CHECK(row[0] == 3);
  CHECK(row[2] == 5);
}

}  // namespace trainscope::test
