// Sums and maxima of rows, for softmax and what is built on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace trainscope::cpu {

// Sum of f(i) for i in [0, n); f may write element i. Partial sums over 512 elements are formed in
// T, their sum in double.
template <typename T, class F>
double sum_of(std::int64_t n, F f) {
  constexpr std::int64_t kChunk = 512;
  double total = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t end = std::min(n, begin + kChunk);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) sum += f(i);
    total += static_cast<double>(sum);
  }
  return total;
}

template <typename T>
T largest_of(const T* x, std::int64_t n) {
  T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace trainscope::cpu
