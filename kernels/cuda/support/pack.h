// Elements that one thread reads or writes at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

inline constexpr int kPackWidth = 4;
inline constexpr unsigned kPackThreads = 256;  // of a block that does nothing but packs

// kWidth elements side by side, moved by instructions of up to 16 bytes.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth > 16 ? 16 : sizeof(T) * kWidth) Pack {
  T values[kWidth];
};

// Whether packs of T may begin at this address.
template <class T, int kWidth = kPackWidth>
bool takes_packs(const T* address) {
  return reinterpret_cast<std::uintptr_t>(address) % alignof(Pack<T, kWidth>) == 0;
}

// How many elements of each of these types a thread takes: 16 bytes of those of two bytes too, as
// few bytes on their way leave the memory idle.
template <class... T>
inline constexpr int kPackOf = ((sizeof(T) <= 2) && ...) ? 8 : kPackWidth;

// The elements from x on, or the one at x repeated.
template <class T, int kWidth>
__device__ Pack<T, kWidth> load_pack(const T* x, bool repeated) {
  if (!repeated) return *reinterpret_cast<const Pack<T, kWidth>*>(x);
  Pack<T, kWidth> pack;
  for (int i = 0; i < kWidth; ++i) pack.values[i] = *x;
  return pack;
}

// Of a grid whose threads do an item each.
inline unsigned blocks_for(std::int64_t items, unsigned threads = kPackThreads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

}  // namespace trainscope::cuda
