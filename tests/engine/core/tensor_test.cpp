// Tests of host tensors.
#include "engine/core/tensor.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

template <typename T>
std::vector<T> list(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

TEST_CASE("tensor: memory is zeroed, aligned to 64 bytes, never null") {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 1000}) {
    const Tensor tensor(TensorType{.dtype = DType::kF32, .shape = {n}});
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    CHECK(tensor.data() != nullptr);
    CHECK(list<float>(tensor) == std::vector<float>(static_cast<std::size_t>(n)));
  }
}

TEST_CASE("tensor: copies are deep, moves keep the memory") {
  Tensor a = Tensor::ints(std::vector<std::int64_t>{1, 2, 3});
  Tensor b = a;
  b.values<std::int64_t>()[0] = 9;
  CHECK(list<std::int64_t>(a) == std::vector<std::int64_t>{1, 2, 3});
  Tensor c;
  c = b;
  CHECK(list<std::int64_t>(c) == std::vector<std::int64_t>{9, 2, 3});
  const std::byte* memory = c.data();
  const Tensor d = std::move(c);
  CHECK(d.data() == memory);
}

TEST_CASE("tensor: scalar, of, view and reshaped") {
  const Tensor scalar = Tensor::scalar(2.5);
  CHECK(scalar.type() == TensorType{.dtype = DType::kF64, .shape = {}});
  CHECK(scalar.values<double>()[0] == 2.5);
  Tensor matrix = Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  CHECK(matrix.view().as<float>()[3] == 4);
  CHECK(matrix.view().type == matrix.type());
  const Tensor row = std::move(matrix).reshaped({4});
  CHECK(row.shape() == Shape{4});
  CHECK(row.values<float>()[3] == 4);
}

TEST_CASE("tensor: a shape whose size overflows is out of memory, not undefined") {
  const std::int64_t huge = std::int64_t{1} << 32;
  const Error error = error_of([&] {
    Tensor(TensorType{.dtype = DType::kF64, .shape = {huge, huge}});
  });
  CHECK(error.code() == ErrorCode::kOutOfMemory);
  CHECK(error.message() == "a tensor f64[4294967296,4294967296] does not fit into memory");
  CHECK_THROWS_AS(Tensor(TensorType{.dtype = DType::kF64, .shape = {INT64_MAX, 1}}), Error);
  // Nothing at all, whatever the other dimensions are.
  CHECK(Tensor(TensorType{.dtype = DType::kF64, .shape = {0, 1 << 20}}).elements() == 0);
}

TEST_CASE("convert: as static_cast does, bool by comparison with zero") {
  const Tensor f = Tensor::of<float>({4}, std::vector<float>{-1.7F, 0, 0.4F, 300});
  CHECK(list<std::int32_t>(convert(f, DType::kI32)) == std::vector<std::int32_t>{-1, 0, 0, 300});
  CHECK(list<bool>(convert(f, DType::kBool)) == std::vector<bool>{true, false, true, true});
  CHECK(list<double>(convert(f, DType::kF64))[0] == double{-1.7F});
  const Tensor i = Tensor::ints(std::vector<std::int64_t>{(std::int64_t{1} << 40) + 5, -1});
  CHECK(list<std::int32_t>(convert(i, DType::kI32)) == std::vector<std::int32_t>{5, -1});
  CHECK(list<float>(convert(i, DType::kF32))[1] == -1.0F);
  const Tensor b = convert(i, DType::kBool);
  CHECK(list<std::int64_t>(convert(b, DType::kI64)) == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("convert: floats outside the integer's range become its least value") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor f = Tensor::of<float>({5}, std::vector<float>{nan, inf, -inf, 3e9F, -2147483648.0F});
  CHECK(list<std::int32_t>(convert(f, DType::kI32)) == std::vector<std::int32_t>(5, INT32_MIN));
  CHECK(list<std::int64_t>(convert(f, DType::kI64)) ==
        std::vector<std::int64_t>{INT64_MIN, INT64_MIN, INT64_MIN, 3'000'000'000, INT32_MIN});
  CHECK(list<bool>(convert(f, DType::kBool)) == std::vector<bool>(5, true));
}

TEST_CASE("as_ints: i32 and i64 only") {
  const Tensor i = Tensor::ints(std::vector<std::int64_t>{-1, 5});
  CHECK(as_ints(i) == std::vector<std::int64_t>{-1, 5});
  CHECK(as_ints(convert(i, DType::kI32)) == std::vector<std::int64_t>{-1, 5});
  const Error error = error_of([] { as_ints(Tensor::scalar(1.0F)); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() == "expected a tensor of integers (i32 or i64), found f32[]");
}

}  // namespace
}  // namespace trainscope
