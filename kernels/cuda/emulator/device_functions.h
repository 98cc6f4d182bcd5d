// CUDA's built-in types and functions for kernels that run in the emulator. A kernel that needs
// another one adds it here.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/emulator/emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __grid_constant__

// --- Vectors -------------------------------------------------------------------------------------
// NOLINTBEGIN: CUDA's names
#define TRAINSCOPE_VECTORS(type, name)                             \
  struct alignas(2 * sizeof(type)) name##2 {                       \
    type x, y;                                                     \
  };                                                               \
  struct alignas(16) name##4 {                                     \
    type x, y, z, w;                                               \
  };                                                               \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TRAINSCOPE_VECTORS(float, float)
TRAINSCOPE_VECTORS(int, int)
TRAINSCOPE_VECTORS(unsigned, uint)
#undef TRAINSCOPE_VECTORS

// --- Barriers, votes, shuffles -------------------------------------------------------------------
// Where the caller of a function stands, as its argument of default.
#define TRAINSCOPE_HERE \
  { __builtin_FILE(), __builtin_LINE() }

namespace trainscope::cuda::emulator {

inline unsigned ballot(unsigned mask, bool vote, Line line) {
  const LaneWords& lanes = meet_warp({Intrinsic::kVote, line}, mask, vote ? 1 : 0);
  unsigned votes = 0;
  for (unsigned i = 0; i < 32; ++i) votes |= lanes.words[i] != 0 ? 1U << i : 0U;
  return votes & lanes.mask;
}

// The value that lane `source` gives. A GPU would give anything where the mask leaves it out.
template <class T>
T shuffled(unsigned mask, T value, unsigned source, Line line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take words of 32 and 64 bits");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const LaneWords& lanes = meet_warp({Intrinsic::kShuffle, line}, mask, word);
  if ((lanes.mask >> source & 1U) == 0) die("a shuffle reads a lane that its mask leaves out");
  std::memcpy(&value, &lanes.words[source], sizeof value);
  return value;
}

}  // namespace trainscope::cuda::emulator

inline void __syncthreads(::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  using namespace trainscope::cuda::emulator;
  meet_block({Intrinsic::kBarrier, line}, false);
}
inline int __syncthreads_count(int vote,
                               ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  using namespace trainscope::cuda::emulator;
  return meet_block({Intrinsic::kBarrier, line}, vote != 0);
}
inline int __syncthreads_or(int vote, ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return __syncthreads_count(vote, line) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int vote, ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return __syncthreads_count(vote == 0 ? 1 : 0, line) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU,
                       ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  using namespace trainscope::cuda::emulator;
  meet_warp({Intrinsic::kWarpBarrier, line}, mask, 0);
}
inline unsigned __ballot_sync(unsigned mask, int vote,
                              ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return trainscope::cuda::emulator::ballot(mask, vote != 0, line);
}
inline int __any_sync(unsigned mask, int vote,
                      ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return __ballot_sync(mask, vote, line) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int vote,
                      ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return __ballot_sync(mask, vote, line) == mask ? 1 : 0;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source,
              ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  return trainscope::cuda::emulator::shuffled(mask, value, static_cast<unsigned>(source) % 32,
                                              line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other,
                  ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  const unsigned source = trainscope::cuda::emulator::lane() ^ static_cast<unsigned>(other);
  return trainscope::cuda::emulator::shuffled(mask, value, source, line);
}
// Beyond the warp's ends a lane keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance,
                   ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  const unsigned own = trainscope::cuda::emulator::lane();
  const unsigned source = own + distance < 32 ? own + distance : own;
  return trainscope::cuda::emulator::shuffled(mask, value, source, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance,
                 ::trainscope::cuda::emulator::Line line = TRAINSCOPE_HERE) {
  const unsigned own = trainscope::cuda::emulator::lane();
  const unsigned source = own >= distance ? own - distance : own;
  return trainscope::cuda::emulator::shuffled(mask, value, source, line);
}

// --- Bits and integers ---------------------------------------------------------------------------
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
template <class T>
T __ldg(const T* address) {
  return *address;
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }

// Of integers alone: sums of floats by them would depend on the order.
template <class T>
requires std::is_integral_v<T> T atomicAdd(T* address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <class T>
requires std::is_integral_v<T> T atomicOr(T* address, T value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <class T>
requires std::is_integral_v<T> T atomicMax(T* address, T value) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (value > old && !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T>
requires std::is_integral_v<T> T atomicMin(T* address, T value) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (value < old && !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {
  }
  return old;
}

// --- Numbers -------------------------------------------------------------------------------------
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
template <class T>
requires std::is_arithmetic_v<T> T min(T a, T b) { return b < a ? b : a; }
template <class T>
requires std::is_arithmetic_v<T> T max(T a, T b) { return a < b ? b : a; }
// NOLINTEND
