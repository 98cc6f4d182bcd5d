// Moments of a block by two passes, blocks merged by Chan, Golub and LeVeque's formula ("Algorithms
// for computing the sample variance", 1983).
#include "profiler/numerics/tensor_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/api/conversion.h"
#include "profiler/numerics/widest.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kBlockElements = 4096;
constexpr std::size_t kWorthAThread = std::size_t{1} << 18;  // bytes
using Block = std::array<double, kBlockElements>;

template <class T>
bool is_aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % sizeof(T) == 0;
}

// Elements as f64: where they lie, or in `block`.
std::span<const double> in_f64(DType dtype, std::span<const std::byte> bytes, Block& block) {
  const std::size_t elements = bytes.size() / size_of(dtype);
  if (dtype == DType::kF64 && is_aligned<double>(bytes)) {
    return {reinterpret_cast<const double*>(bytes.data()), elements};
  }
  // Conversion reads elements alone: the const of its argument's type is lost, not broken.
  convert_elements({.dtype = dtype, .data = const_cast<std::byte*>(bytes.data())},
                   {.dtype = DType::kF64, .data = block.data()},
                   static_cast<std::int64_t>(elements));
  return std::span(block).first(elements);
}

// f(elements of a block), of whole elements in their order: f32 where they lie, others in f64.
template <class F>
void for_blocks(DType dtype, std::span<const std::byte> bytes, F f) {
  Block block;
  const std::size_t most = kBlockElements * size_of(dtype);
  const bool is_single = dtype == DType::kF32 && is_aligned<float>(bytes);
  for (std::size_t at = 0; at < bytes.size(); at += most) {
    const std::span<const std::byte> these = bytes.subspan(at, std::min(most, bytes.size() - at));
    if (is_single) {
      f(std::span(reinterpret_cast<const float*>(these.data()), these.size() / sizeof(float)));
    } else {
      f(in_f64(dtype, these, block));
    }
  }
}

// Adds the elements of `bytes`, which stand from position `first` on; how many it leaves out.
std::int64_t sketch_elements(DType dtype, std::span<const std::byte> bytes, std::uint64_t first,
                             Sketch& sketch) {
  std::int64_t left_out = 0;
  for_blocks(dtype, bytes, [&](auto elements) {
    left_out += add_to_sketch(elements, first, sketch);
    first += elements.size();
  });
  return left_out;
}

// f() and g(), each on a thread: of the pool that kernels have, whose threads wait for the next
// kernel and would take the time of others.
template <class F, class G>
void run_beside([[maybe_unused]] int threads, F f, G g) {
#pragma omp parallel sections num_threads(threads)
  {
#pragma omp section
    f();
#pragma omp section
    g();
  }
}

// Of a block, in one pass, over four lanes each, as a compiler cannot split a sum of its own
// accord.
struct BlockSums {
  double all = 0.0;
  double squares = 0.0;
  double magnitudes = 0.0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  std::int64_t zeros = 0;
};

constexpr std::size_t kLanes = 4;
using Lanes [[gnu::vector_size(sizeof(double) * kLanes)]] = double;
using LaneCounts [[gnu::vector_size(sizeof(std::int64_t) * kLanes)]] = std::int64_t;

struct LaneSums {
  Lanes all{};
  Lanes squares{};
  Lanes magnitudes{};
  Lanes least = Lanes{} + std::numeric_limits<double>::infinity();
  Lanes most = Lanes{} - std::numeric_limits<double>::infinity();
  LaneCounts zeros{};

  void add(const Lanes& x) {
    all += x;
    squares += x * x;
    magnitudes += x < 0.0 ? -x : x;
    least = x < least ? x : least;
    most = x > most ? x : most;
    zeros -= x == 0.0;  // true is -1
  }
};

template <class Vector>
auto sum_of(const Vector& lanes) {
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

// f(the next four elements), of so many as are whole lanes; their number.
template <class T, class F>
[[gnu::always_inline]] inline std::size_t for_lanes(std::span<const T> elements, F f) {
  using Given [[gnu::vector_size(sizeof(T) * kLanes)]] = T;
  std::size_t i = 0;
  for (; i + kLanes <= elements.size(); i += kLanes) {
    Given x;
    std::memcpy(&x, elements.data() + i, sizeof x);
    f(__builtin_convertvector(x, Lanes));
  }
  return i;
}

template <class T>
BlockSums sums_of(std::span<const T> elements) {
  LaneSums sums;
  std::size_t done = 0;
  in_four_lanes([&] {
    LaneSums these;
    done = for_lanes(elements, [&these](const Lanes& x) { these.add(x); });
    sums = these;
  });
  BlockSums result;
  for (const T element : elements.subspan(done)) {
    const double x = element;
    sums.all[0] += x;
    sums.squares[0] += x * x;
    sums.magnitudes[0] += std::abs(x);
    result.least = std::min(result.least, x);
    result.most = std::max(result.most, x);
    result.zeros += x == 0.0 ? 1 : 0;
  }
  result.all = sum_of(sums.all);
  result.squares = sum_of(sums.squares);
  result.magnitudes = sum_of(sums.magnitudes);
  result.zeros += sum_of(sums.zeros);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.least = std::min(result.least, sums.least[lane]);
    result.most = std::max(result.most, sums.most[lane]);
  }
  return result;
}

template <class T>
double squares_around(std::span<const T> elements, double mean) {
  Lanes sums{};
  std::size_t done = 0;
  in_four_lanes([&] {
    Lanes these{};
    done = for_lanes(elements, [&these, mean](const Lanes& x) {
      const Lanes apart = x - mean;
      these += apart * apart;
    });
    sums = these;
  });
  for (const T element : elements.subspan(done)) {
    const double x = element;
    sums[0] += (x - mean) * (x - mean);
  }
  return sum_of(sums);
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
  const auto first = static_cast<std::uint64_t>(counted_.count);
  const auto sketch = [&] { sketch_elements(dtype_, bytes, first, sketch_); };
  const auto rest = [&] {
    hasher_.bytes(bytes);
    for_blocks(dtype_, bytes, [this](auto block) { add_statistics(block); });
  };
  if (threads_ > 1 && bytes.size() >= kWorthAThread) return run_beside(threads_, sketch, rest);
  sketch();
  rest();
}

void TensorSummarizer::count_special(double element) {
  if (std::isnan(element)) ++counted_.nan;
  if (element == std::numeric_limits<double>::infinity()) ++counted_.positive_infinite;
  if (element == -std::numeric_limits<double>::infinity()) ++counted_.negative_infinite;
}

template <class T>
void TensorSummarizer::add_statistics(std::span<const T> elements) {
  const std::int64_t before = counted_.finite();
  counted_.count += static_cast<std::int64_t>(elements.size());
  BlockSums sums = sums_of(elements);
  std::vector<T> finite;  // the elements again, where some are not
  if (!std::isfinite(sums.all)) {
    for (const T x : elements) {
      if (std::isfinite(x)) finite.push_back(x);
      count_special(x);
    }
    elements = finite;
    sums = sums_of(elements);
  }
  if (elements.empty()) return;
  const auto here = static_cast<double>(elements.size());
  const double mean = sums.all / here;
  const double total = static_cast<double>(before) + here;
  const double apart = mean - mean_;
  squares_ +=
      squares_around(elements, mean) + apart * apart * static_cast<double>(before) * here / total;
  mean_ += apart * here / total;
  sum_of_squares_ += sums.squares;
  counted_.l1 += sums.magnitudes;
  counted_.zeros += sums.zeros;
  least_ = std::min(least_, sums.least);
  most_ = std::max(most_, sums.most);
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

TensorSummary summary_of(DType dtype, std::span<const std::byte> bytes, int threads) {
  TensorSummarizer summarizer(dtype, threads);
  summarizer.add(bytes);
  return summarizer.summary();
}

FiniteSketch sketch_of(DType dtype, std::span<const std::byte> bytes, int threads) {
  FiniteSketch result;
  if (threads < 2 || bytes.size() < kWorthAThread) {
    result.left_out = sketch_elements(dtype, bytes, 0, result.sketch);
    return result;
  }
  const std::size_t half = bytes.size() / size_of(dtype) / 2;  // elements
  FiniteSketch second;
  run_beside(
      threads,
      [&] {
        const std::span<const std::byte> rest = bytes.subspan(half * size_of(dtype));
        second.left_out = sketch_elements(dtype, rest, half, second.sketch);
      },
      [&] {
        result.left_out =
            sketch_elements(dtype, bytes.first(half * size_of(dtype)), 0, result.sketch);
      });
  for (std::size_t i = 0; i < result.sketch.size(); ++i) result.sketch[i] += second.sketch[i];
  result.left_out += second.left_out;
  return result;
}

}  // namespace trainscope::profiler
