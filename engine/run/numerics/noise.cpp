// Sketches of whole tensors and of their heads.
#include "engine/run/numerics/noise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainscope {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.data(), tensor.bytes()};
}

std::span<const std::byte> head_of(const Tensor& tensor) {
  const std::int64_t elements = std::min(tensor.elements(), kHeadElements);
  return bytes_of(tensor).first(static_cast<std::size_t>(elements) * size_of(tensor.dtype()));
}

profiler::FiniteSketch divided_sketch(DType dtype, std::span<const std::byte> bytes, double divisor,
                                      int threads) {
  profiler::FiniteSketch result = profiler::sketch_of(dtype, bytes, threads);
  for (double& bucket : result.sketch) bucket /= divisor;
  return result;
}

// The first `bytes` of the tensor whose examples, in its first axis, stand in it as `order` says.
std::vector<std::byte> back_in_order(const Tensor& tensor, const ExampleOrder& order,
                                     std::size_t bytes) {
  const std::size_t block = tensor.bytes() / order.size();
  std::vector<std::byte> result(bytes);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t to = static_cast<std::size_t>(order[place]) * block;
    if (to >= bytes) continue;
    std::memcpy(result.data() + to, tensor.data() + place * block, std::min(block, bytes - to));
  }
  return result;
}

bool alike(const std::optional<double>& head, const std::optional<double>& whole) {
  return head && whole && *head <= 2.0 * *whole && *whole <= 2.0 * *head;
}

}  // namespace

bool holds_examples(const Shape& shape, int axis, std::size_t examples) {
  return shape.rank > axis && shape[axis] > 0 &&
         shape[axis] % static_cast<std::int64_t>(examples) == 0;
}

Tensor reordered(const Tensor& tensor, int axis, const ExampleOrder& order) {
  const Shape& shape = tensor.type().shape;
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  const auto examples = static_cast<std::int64_t>(order.size());
  const std::size_t block = tensor.bytes() / static_cast<std::size_t>(outer * examples);
  Tensor result(tensor.type());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < examples; ++i) {
      const auto to = static_cast<std::size_t>(o * examples + i) * block;
      const auto from =
          static_cast<std::size_t>(o * examples + order[static_cast<std::size_t>(i)]) * block;
      std::memcpy(result.data() + to, tensor.data() + from, block);
    }
  }
  return result;
}

TensorNoise::TensorNoise(const ScaledTensor& exact, const profiler::TensorSummary& summary,
                         int threads)
    : threads_(threads) {
  const profiler::TensorStatistics& statistics = summary.statistics;
  whole_ = {
      .finite = {.sketch = summary.sketch, .left_out = statistics.count - statistics.finite()},
      .l2 = statistics.l2};
  if (exact.tensor.elements() <= kHeadElements) return;
  head_ = {.finite =
               divided_sketch(exact.tensor.dtype(), head_of(exact.tensor), exact.divisor, threads)};
  head_->l2 = profiler::estimated_norm(head_->finite.sketch);
}

std::optional<double> TensorNoise::error(const Elements& exact, std::span<const std::byte> bytes,
                                         const ScaledTensor& rounded) const {
  const profiler::FiniteSketch finite =
      divided_sketch(rounded.tensor.dtype(), bytes, rounded.divisor, threads_);
  if (finite.left_out != exact.finite.left_out) return std::nullopt;
  const double apart = profiler::estimated_distance(finite.sketch, exact.finite.sketch);
  if (apart == 0.0) return 0.0;
  const double relative = whole_.l2 > 0.0 ? apart / exact.l2 : apart;
  return std::isfinite(relative) ? std::optional(relative) : std::nullopt;
}

void TensorNoise::note(std::optional<double> error) {
  if (error) largest_ = std::max(largest_.value_or(0.0), *error);
}

void TensorNoise::measure(const ScaledTensor& rounded) {
  const std::optional<double> whole = error(whole_, bytes_of(rounded.tensor), rounded);
  note(whole);
  if (head_ && !alike(error(*head_, head_of(rounded.tensor), rounded), whole)) head_.reset();
}

void TensorNoise::measure(const ScaledTensor& rounded, const ExampleOrder& order,
                          bool has_examples) {
  const Elements& exact = head_ ? *head_ : whole_;
  const std::span<const std::byte> bytes =
      head_ ? head_of(rounded.tensor) : bytes_of(rounded.tensor);
  std::optional<double> least;
  if (has_examples && holds_examples(rounded.tensor.shape(), 0, order.size())) {
    least = error(exact, back_in_order(rounded.tensor, order, bytes.size()), rounded);
  }
  if (!least || *least > kMostNoise) {  // it holds none there, or is as long by chance: a sum
    const std::optional<double> as_it_is = error(exact, bytes, rounded);
    if (as_it_is && (!least || *as_it_is < *least)) least = as_it_is;
  }
  if (least && *least <= kMostNoise) note(least);
}

}  // namespace trainscope
