// Statistics against sums done otherwise, in pieces and with elements that are no numbers.
#include "profiler/numerics/tensor_summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/core/tensor.h"
#include "kernels/api/random.h"

namespace trainscope::profiler {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.data(), tensor.bytes()};
}

TEST_CASE("summary: of known numbers") {
  const Tensor tensor =
      Tensor::of<float>(Shape{5}, std::vector<float>{3.0F, -4.0F, 0.0F, 1.0F, 0.0F});
  const TensorStatistics s = summary_of(DType::kF32, bytes_of(tensor)).statistics;
  CHECK(s.count == 5);
  CHECK(s.zeros == 2);
  CHECK(s.mean == doctest::Approx(0.0));
  CHECK(s.deviation == doctest::Approx(std::sqrt(26.0 / 5.0)));
  CHECK(s.least == -4.0);
  CHECK(s.most == 3.0);
  CHECK(s.l1 == 8.0);
  CHECK(s.l2 == doctest::Approx(std::sqrt(26.0)));
  CHECK(s.finite() == 5);
}

TEST_CASE("summary: pieces give what the whole gives") {
  Tensor tensor(TensorType{.dtype = DType::kF32, .shape = Shape{10000}});
  for (std::size_t i = 0; i < 10000; ++i) {
    tensor.values<float>()[i] = 5.0F + static_cast<float>(random_normal(3, 4, i));
  }
  const TensorSummary whole = summary_of(DType::kF32, bytes_of(tensor));
  TensorSummarizer pieces(DType::kF32);
  pieces.add(bytes_of(tensor).subspan(0, 4 * 1111));
  pieces.add(bytes_of(tensor).subspan(4 * 1111));
  const TensorSummary sum = pieces.summary();
  CHECK(sum.hash == whole.hash);
  CHECK(sum.sketch == whole.sketch);
  CHECK(sum.statistics.mean == doctest::Approx(whole.statistics.mean).epsilon(1e-12));
  CHECK(sum.statistics.deviation == doctest::Approx(whole.statistics.deviation).epsilon(1e-12));
  CHECK(whole.statistics.mean == doctest::Approx(5.0).epsilon(0.01));
  CHECK(whole.statistics.deviation == doctest::Approx(1.0).epsilon(0.05));
}

TEST_CASE("summary: two threads give the bits of one, in f32, f64 and bf16") {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    constexpr std::int64_t kElements = 200'003;
    Tensor values(TensorType{.dtype = DType::kF64, .shape = Shape{kElements}});
    for (std::size_t i = 0; i < kElements; ++i) {
      values.values<double>()[i] = 3.0 + random_normal(3, 4, i);
    }
    values.values<double>()[150'000] = std::numeric_limits<double>::infinity();
    const Tensor tensor = convert(values, dtype);
    const TensorSummary one = summary_of(dtype, bytes_of(tensor), 1);
    const TensorSummary two = summary_of(dtype, bytes_of(tensor), 2);
    CHECK(two.statistics == one.statistics);
    CHECK(two.sketch == one.sketch);
    CHECK(two.hash == one.hash);
    CHECK(sketch_of(dtype, bytes_of(tensor), 1).sketch == one.sketch);
    const FiniteSketch shared = sketch_of(dtype, bytes_of(tensor), 2);
    CHECK(estimated_distance(shared.sketch, one.sketch) <= 1e-12 * one.statistics.l2);
    CHECK(shared.left_out == 1);
    // Bytes that begin where no double may.
    std::vector<std::byte> moved(tensor.bytes() + size_of(dtype));
    std::ranges::copy(bytes_of(tensor),
                      moved.begin() + static_cast<std::ptrdiff_t>(size_of(dtype)));
    CHECK(summary_of(dtype, std::span<const std::byte>(moved).subspan(size_of(dtype))).sketch ==
          one.sketch);
  }
}

TEST_CASE("summary: NaN and infinities are counted, and left out of the rest") {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor tensor =
      Tensor::of<float>(Shape{5}, std::vector<float>{1.0F, std::nanf(""), inf, -inf, 3.0F});
  const TensorStatistics s = summary_of(DType::kF32, bytes_of(tensor)).statistics;
  CHECK(s.nan == 1);
  CHECK(s.positive_infinite == 1);
  CHECK(s.negative_infinite == 1);
  CHECK(s.finite() == 2);
  CHECK(s.mean == 2.0);
  CHECK(s.most == 3.0);
  const Tensor none = Tensor::of<float>(Shape{1}, std::vector<float>{std::nanf("")});
  CHECK(summary_of(DType::kF32, bytes_of(none)).statistics.l2 == 0.0);
}

TEST_CASE("summary: sums beyond the largest number are that number") {
  const Tensor tensor = Tensor::of<double>(Shape{2}, std::vector<double>{1.5e308, 1.5e308});
  const TensorStatistics s = summary_of(DType::kF64, bytes_of(tensor)).statistics;
  for (const double number : {s.mean, s.deviation, s.l1, s.l2}) CHECK(std::isfinite(number));
}

TEST_CASE("summary: divided as its elements are") {
  const Tensor tensor = Tensor::of<float>(Shape{3}, std::vector<float>{8.0F, -4.0F, 2.0F});
  const Tensor quarter = Tensor::of<float>(Shape{3}, std::vector<float>{2.0F, -1.0F, 0.5F});
  TensorSummary divided = summary_of(DType::kF32, bytes_of(tensor));
  divided.divide(4.0);
  const TensorSummary expected = summary_of(DType::kF32, bytes_of(quarter));
  CHECK(divided.statistics == expected.statistics);
  CHECK(divided.sketch == expected.sketch);
}

TEST_CASE("summary: other element types") {
  const Tensor ids = Tensor::ints(std::vector<std::int64_t>{1, 2, 3});
  CHECK(summary_of(DType::kI64, bytes_of(ids)).statistics.mean == 2.0);
  const Tensor halves =
      convert(Tensor::of<float>(Shape{2}, std::vector<float>{0.5F, 1.5F}), DType::kBF16);
  CHECK(summary_of(DType::kBF16, bytes_of(halves)).statistics.mean == 1.0);
  const Tensor wide = convert(Tensor::ints(std::vector<std::int64_t>{4}), DType::kF64);
  CHECK(summary_of(DType::kF64, bytes_of(wide)).statistics.l2 == 4.0);
}

}  // namespace
}  // namespace trainscope::profiler
