// Sums and maxima over the threads of a warp or of a block, always formed in the same order, and
// rows that one of the two works on together.
#pragma once

#include <cstdint>

#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

template <typename T>
__device__ inline T warp_sum(T value) {
  for (int other = kWarp / 2; other > 0; other /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, other);
  }
  return value;
}

// What is not larger than the other, a NaN for one, is left out.
template <typename T>
__device__ inline T larger(T a, T b) {
  return b > a ? b : a;
}

template <typename T>
__device__ inline T warp_max(T value) {
  for (int other = kWarp / 2; other > 0; other /= 2) {
    value = larger(value, __shfl_xor_sync(kWholeWarp, value, other));
  }
  return value;
}

// Sums of kCount values over the block's threads, of one dimension and in whole warps. Two
// barriers.
template <int kCount, typename T>
__device__ inline void block_sums(T (&values)[kCount]) {
  TRAINSCOPE_SHARED(T, of_warps, kCount * kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (T& value : values) value = warp_sum(value);
  __syncthreads();  // the sums of a call before have been read
  if (lane == 0) {
    for (int k = 0; k < kCount; ++k) of_warps[k * kWarp + warp] = values[k];
  }
  __syncthreads();
  for (int k = 0; k < kCount; ++k) {
    values[k] = warp_sum(lane < warps ? of_warps[k * kWarp + lane] : T{0});
  }
}

template <typename T>
__device__ inline T block_sum(T value) {
  T values[1] = {value};
  block_sums(values);
  return values[0];
}

// `least` is below every value.
template <typename T>
__device__ inline T block_max(T value, T least) {
  TRAINSCOPE_SHARED(T, of_warps, kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  value = warp_max(value);
  __syncthreads();
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return warp_max(lane < warps ? of_warps[lane] : least);
}

// The threads that work on one row together.
struct WarpTeam {
  __device__ static int rank() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int size() { return kWarp; }
  // The first row of this team, and how many teams the grid has.
  __device__ static std::int64_t first() {
    return std::int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  }
  __device__ static std::int64_t teams() { return std::int64_t{gridDim.x} * (blockDim.x / kWarp); }
  template <typename T>
  __device__ static T sum(T value) {
    return warp_sum(value);
  }
  template <int kCount, typename T>
  __device__ static void sums(T (&values)[kCount]) {
    for (T& value : values) value = warp_sum(value);
  }
  template <typename T>
  __device__ static T max(T value, T /*least*/) {
    return warp_max(value);
  }
};

struct BlockTeam {
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  __device__ static int size() { return static_cast<int>(blockDim.x); }
  __device__ static std::int64_t first() { return blockIdx.x; }
  __device__ static std::int64_t teams() { return gridDim.x; }
  template <typename T>
  __device__ static T sum(T value) {
    return block_sum(value);
  }
  template <int kCount, typename T>
  __device__ static void sums(T (&values)[kCount]) {
    block_sums(values);
  }
  template <typename T>
  __device__ static T max(T value, T least) {
    return block_max(value, least);
  }
};

}  // namespace trainscope::cuda
