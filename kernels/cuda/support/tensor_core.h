// What a warp does on tensor cores, copies that a thread does not wait for, and powers of two: the
// wrappers of the instructions, and what they do in the emulator. Of two-byte types T, BFloat16 or
// Float16; all 32 lanes call. The layouts are those of "Warp Level Matrix Instructions" in NVIDIA's
// PTX ISA.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/support/language.h"

#ifndef TRAINSCOPE_EMULATE
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace trainscope::cuda {

// Two elements side by side in a register, the first in the lower half.
using Pair = std::uint32_t;

// With g = lane / 4 and t = lane % 4:
// A of an MMA, [16, 16]: rows g, g + 8, g, g + 8; columns 2 t, 2 t, 2 t + 8, 2 t + 8 and the next.
struct FragmentA {
  Pair pairs[4];
};
// B, [16, 8]: rows 2 t and the next, 2 t + 8 and the next; column g.
struct FragmentB {
  Pair pairs[2];
};
// C and D, [16, 8] in f32: rows g, g, g + 8, g + 8; columns 2 t, 2 t + 1, 2 t, 2 t + 1.
struct FragmentC {
  float values[4];
};

#ifdef TRAINSCOPE_EMULATE

// 2 to the power x, which a GPU approximates: subnormal operands and results are 0.
inline float exp2_approximate(float x) {
  const auto flushed = [](float v) { return std::fpclassify(v) == FP_SUBNORMAL ? 0.0F : v; };
  return flushed(static_cast<float>(std::exp2(static_cast<double>(flushed(x)))));
}
// The larger one, of a NaN and a number the number, of zeros the positive one.
inline float maximum_number(float a, float b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::isnan(b) || b < a ? a : b;
}

template <typename T>
Pair pair_of(float first, float second) {
  return Pair{static_cast<T>(first).bits} | Pair{static_cast<T>(second).bits} << 16;
}

namespace emulator {

template <typename T>
float half_of(Pair pair, int half) {
  T value;
  value.bits = static_cast<std::uint16_t>(pair >> (16 * half));
  return value;
}

// The words of all lanes, a pair from each.
struct WarpPairs {
  Pair of[32];
};
inline WarpPairs all_pairs(Pair own, Line line) {
  const LaneWords& lanes = meet_warp({Intrinsic::kShuffle, line}, kWholeWarp, own);
  WarpPairs pairs;
  for (int i = 0; i < 32; ++i) pairs.of[i] = static_cast<Pair>(lanes.words[i]);
  return pairs;
}

}  // namespace emulator

// c += a b. The sums are formed in the order of their index here; a GPU has an order of its own.
template <typename T>
void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b,
                  emulator::Line line = TRAINSCOPE_HERE) {
  emulator::WarpPairs of_a[4];
  emulator::WarpPairs of_b[2];
  for (int i = 0; i < 4; ++i) of_a[i] = emulator::all_pairs(a.pairs[i], line);
  for (int i = 0; i < 2; ++i) of_b[i] = emulator::all_pairs(b.pairs[i], line);
  const auto g = static_cast<int>(emulator::lane() / 4);
  const auto t = static_cast<int>(emulator::lane() % 4);
  for (int i = 0; i < 4; ++i) {
    const int column = 2 * t + i % 2;
    for (int k = 0; k < 16; ++k) {
      const Pair left = of_a[i / 2 + k / 8 * 2].of[4 * g + k % 8 / 2];
      const Pair right = of_b[k / 8].of[4 * column + k % 8 / 2];
      c.values[i] = std::fma(emulator::half_of<T>(left, k % 2), emulator::half_of<T>(right, k % 2),
                             c.values[i]);
    }
  }
}

// Four matrices [8, 8] from shared memory: lane i tells where row i % 8 of matrix i / 8 begins, at
// a multiple of 16 bytes. pairs[m]: elements 2 t and 2 t + 1 of row g of matrix m; transposed,
// elements g of rows 2 t and 2 t + 1.
template <bool kTransposed, typename T>
void load_matrices(Pair (&pairs)[4], const T* row, emulator::Line line = TRAINSCOPE_HERE) {
  const emulator::LaneWords lanes = emulator::meet_warp(
      {emulator::Intrinsic::kShuffle, line}, kWholeWarp, reinterpret_cast<std::uintptr_t>(row));
  const unsigned g = emulator::lane() / 4;
  const unsigned t = emulator::lane() % 4;
  for (unsigned m = 0; m < 4; ++m) {
    const auto element = [&](unsigned along) {
      const unsigned r = kTransposed ? along : g;
      return reinterpret_cast<const T*>(lanes.words[8 * m + r])[kTransposed ? g : along].bits;
    };
    pairs[m] = Pair{element(2 * t)} | Pair{element(2 * t + 1)} << 16;
  }
}

#else

__device__ __forceinline__ float exp2_approximate(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
__device__ __forceinline__ float maximum_number(float a, float b) { return fmaxf(a, b); }

template <typename T>
__device__ __forceinline__ Pair pair_of(float first, float second) {
  Pair pair;
  if constexpr (std::is_same_v<T, BFloat16>) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    memcpy(&pair, &both, sizeof pair);
  } else {
    const __half2 both = __floats2half2_rn(first, second);
    memcpy(&pair, &both, sizeof pair);
  }
  return pair;
}

template <typename T>
__device__ __forceinline__ void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.values[0]), "+f"(c.values[1]), "+f"(c.values[2]), "+f"(c.values[3])
        : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b.pairs[0]),
          "r"(b.pairs[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.values[0]), "+f"(c.values[1]), "+f"(c.values[2]), "+f"(c.values[3])
        : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b.pairs[0]),
          "r"(b.pairs[1]));
  }
}

template <bool kTransposed, typename T>
__device__ __forceinline__ void load_matrices(Pair (&pairs)[4], const T* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  }
}

#endif

// Copies of 16 bytes from global to shared memory that are done when the thread waits for them, and
// seen by others after the next barrier. In the emulator they are done no earlier than that.
class AsyncCopies {
 public:
  // Zeros where there is nothing to copy.
  __device__ __forceinline__ void copy(void* to, const void* from, bool present) {
#ifdef TRAINSCOPE_EMULATE
    if (count_ == kMost) emulator::die("more asynchronous copies than AsyncCopies has room for");
    copies_[count_++] = {to, present ? from : nullptr, group_};
#else
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = present ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#endif
  }

  // What was copied since the last call is a group.
  __device__ __forceinline__ void close_group() {
#ifdef TRAINSCOPE_EMULATE
    ++group_;
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }

  // Until all groups are done but the last `kOpen` ones.
  template <int kOpen>
  __device__ __forceinline__ void wait() {
#ifdef TRAINSCOPE_EMULATE
    int left = 0;
    for (int i = 0; i < count_; ++i) {
      const Copy& copy = copies_[i];
      if (copy.group >= group_ - kOpen) {
        copies_[left++] = copy;
      } else if (copy.from == nullptr) {
        std::memset(copy.to, 0, 16);
      } else {
        std::memcpy(copy.to, copy.from, 16);
      }
    }
    count_ = left;
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#endif
  }

#ifdef TRAINSCOPE_EMULATE
 private:
  static constexpr int kMost = 128;
  struct Copy {
    void* to;
    const void* from;
    int group;
  };
  Copy copies_[kMost];
  int count_ = 0;
  int group_ = 0;
#endif
};

}  // namespace trainscope::cuda
