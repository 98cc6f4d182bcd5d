// A small square of a matrix transposed in registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace trainscope::cpu {

// An 8 x 8 block of 4-byte elements in registers: pairs, then fours, then halves change places.
// y[i * y_stride + j] = x[j * x_stride + i]
template <typename T>
void transpose_block(const T* x, std::int64_t x_stride, T* y, std::int64_t y_stride) {
  static_assert(sizeof(T) == sizeof(float));
  __m256 row[8];
  __m256 mix[8];
  for (int j = 0; j < 8; ++j)
    row[j] = _mm256_loadu_ps(reinterpret_cast<const float*>(x + j * x_stride));
  for (int j = 0; j < 8; j += 2) {
    mix[j] = _mm256_unpacklo_ps(row[j], row[j + 1]);
    mix[j + 1] = _mm256_unpackhi_ps(row[j], row[j + 1]);
  }
  for (int j = 0; j < 8; j += 4) {
    row[j] = _mm256_shuffle_ps(mix[j], mix[j + 2], 0x44);
    row[j + 1] = _mm256_shuffle_ps(mix[j], mix[j + 2], 0xEE);
    row[j + 2] = _mm256_shuffle_ps(mix[j + 1], mix[j + 3], 0x44);
    row[j + 3] = _mm256_shuffle_ps(mix[j + 1], mix[j + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    mix[i] = _mm256_permute2f128_ps(row[i], row[i + 4], 0x20);
    mix[i + 4] = _mm256_permute2f128_ps(row[i], row[i + 4], 0x31);
  }
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(reinterpret_cast<float*>(y + i * y_stride), mix[i]);
}

}  // namespace trainscope::cpu
