// Moments of a block by two passes, blocks merged by Chan, Golub and LeVeque's formula ("Algorithms
// for computing the sample variance", 1983).
#include "profiler/numerics/tensor_summary.h"

#include <algorithm>
#include <cmath>

#include "kernels/api/conversion.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kBlockElements = 4096;

// Sums over four lanes, as a compiler cannot split a sum of its own accord.
template <typename F>
double lane_sum(std::span<const double> elements, F term) {
  double lanes[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= elements.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] += term(elements[i + lane]);
  }
  for (; i < elements.size(); ++i) lanes[0] += term(elements[i]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

// Sums of finite numbers may be beyond the largest one.
double clamped(double sum) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::isnan(sum) ? kMost : std::clamp(sum, -kMost, kMost);
}

}  // namespace

void TensorSummary::divide(double divisor) {
  TensorStatistics& s = statistics;
  for (double* each : {&s.mean, &s.deviation, &s.least, &s.most, &s.l1, &s.l2}) *each /= divisor;
  for (double& bucket : sketch) bucket /= divisor;
}

void TensorSummarizer::add(std::span<const std::byte> bytes) {
  hasher_.bytes(bytes);
  const std::size_t width = size_of(dtype_);
  block_.resize(kBlockElements);
  for (std::size_t at = 0; at < bytes.size(); at += kBlockElements * width) {
    const std::size_t elements = std::min(kBlockElements, (bytes.size() - at) / width);
    // Conversion reads elements alone: the const of its argument's type is lost, not broken.
    convert_elements({.dtype = dtype_, .data = const_cast<std::byte*>(bytes.data() + at)},
                     {.dtype = DType::kF64, .data = block_.data()},
                     static_cast<std::int64_t>(elements));
    add_block({block_.data(), elements});
  }
}

void TensorSummarizer::count_special(double element) {
  if (std::isnan(element)) ++counted_.nan;
  if (element == std::numeric_limits<double>::infinity()) ++counted_.positive_infinite;
  if (element == -std::numeric_limits<double>::infinity()) ++counted_.negative_infinite;
}

void TensorSummarizer::add_block(std::span<const double> elements) {
  add_to_sketch(elements, static_cast<std::uint64_t>(counted_.count), sketch_);
  const std::int64_t before = counted_.finite();
  counted_.count += static_cast<std::int64_t>(elements.size());
  const double all = lane_sum(elements, [](double x) { return x; });
  std::vector<double> finite;  // the elements again, where some are not
  if (!std::isfinite(all)) {
    for (const double x : elements) {
      if (std::isfinite(x)) finite.push_back(x);
      count_special(x);
    }
    elements = finite;
  }
  if (elements.empty()) return;
  const auto here = static_cast<double>(elements.size());
  const double mean = lane_sum(elements, [](double x) { return x; }) / here;
  const double squares = lane_sum(elements, [mean](double x) { return (x - mean) * (x - mean); });
  const double total = static_cast<double>(before) + here;
  const double apart = mean - mean_;
  squares_ += squares + apart * apart * static_cast<double>(before) * here / total;
  mean_ += apart * here / total;
  sum_of_squares_ += lane_sum(elements, [](double x) { return x * x; });
  counted_.l1 += lane_sum(elements, [](double x) { return std::abs(x); });
  for (const double x : elements) {
    counted_.zeros += x == 0.0 ? 1 : 0;
    least_ = std::min(least_, x);
    most_ = std::max(most_, x);
  }
}

TensorSummary TensorSummarizer::summary() const {
  TensorSummary result{.statistics = counted_, .sketch = sketch_, .hash = hasher_.digest()};
  TensorStatistics& statistics = result.statistics;
  if (statistics.finite() == 0) return result;
  statistics.mean = clamped(mean_);
  statistics.deviation = clamped(std::sqrt(squares_ / static_cast<double>(statistics.finite())));
  statistics.least = least_;
  statistics.most = most_;
  statistics.l1 = clamped(statistics.l1);
  statistics.l2 = clamped(std::sqrt(sum_of_squares_));
  return result;
}

TensorSummary summary_of(DType dtype, std::span<const std::byte> bytes) {
  TensorSummarizer summarizer(dtype);
  summarizer.add(bytes);
  return summarizer.summary();
}

}  // namespace trainscope::profiler
