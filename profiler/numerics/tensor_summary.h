// What a trace keeps of a tensor: counts, moments, a sketch and a hash, from its bytes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/core/hash.h"
#include "kernels/api/dtype.h"
#include "profiler/numerics/sketch.h"

namespace trainscope::profiler {

// Of all elements, each converted to f64; from `zeros` on of the finite ones alone.
struct TensorStatistics {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t positive_infinite = 0;
  std::int64_t negative_infinite = 0;
  std::int64_t zeros = 0;
  double mean = 0.0;
  double deviation = 0.0;  // of the population
  double least = 0.0;
  double most = 0.0;
  double l1 = 0.0;
  double l2 = 0.0;

  std::int64_t finite() const { return count - nan - positive_infinite - negative_infinite; }
  bool operator==(const TensorStatistics&) const = default;
};

struct TensorSummary {
  TensorStatistics statistics;
  Sketch sketch{};
  std::uint64_t hash = 0;  // XXH3 of the elements' bytes as they are in memory, little endian

  // Statistics and sketch of the elements divided by it, which is above 0; the hash stays.
  void divide(double divisor);
};

// Takes a tensor's elements in their order. Two threads are quicker with large pieces, and give the
// same bits.
class TensorSummarizer {
 public:
  explicit TensorSummarizer(DType dtype, int threads = 1) : dtype_(dtype), threads_(threads) {}

  // Whole elements.
  void add(std::span<const std::byte> bytes);
  TensorSummary summary() const;

 private:
  template <class T>
  void add_statistics(std::span<const T> elements);
  void count_special(double element);

  DType dtype_;
  int threads_;
  TensorStatistics counted_;
  Sketch sketch_{};
  Hasher hasher_;
  double sum_of_squares_ = 0.0;
  double mean_ = 0.0;     // of the finite ones so far
  double squares_ = 0.0;  // of their differences from it
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
};

// The same from however many threads.
TensorSummary summary_of(DType dtype, std::span<const std::byte> bytes, int threads = 1);

// The sketch alone, and how many elements are not in it because they are not finite.
struct FiniteSketch {
  Sketch sketch{};
  std::int64_t left_out = 0;
};
// That of two threads differs from that of one by the rounding of its sum.
FiniteSketch sketch_of(DType dtype, std::span<const std::byte> bytes, int threads);

}  // namespace trainscope::profiler
