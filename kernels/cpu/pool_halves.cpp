// MaxPool and its gradient where windows of 2 x 2 lie side by side, as most networks have them:
// four loads and three comparisons for a window, a register of windows at a time.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool.h"

namespace trainscope::cpu {
namespace {

// x [planes, rows, columns], y [planes, rows / 2, columns / 2]; an odd last row or column is in no
// window.
struct Planes {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
  std::int64_t out_elements() const { return (rows / 2) * (columns / 2); }
};

Planes planes_of(const Shape& x) { return {.count = x[0] * x[1], .rows = x[2], .columns = x[3]}; }

bool halves(const PoolParams& params, const Shape& x, const Shape& y) {
  const WindowParams& window = params.window;
  if (window.rank != 2) return false;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const bool plain = window.kernel[axis] == 2 && window.stride[axis] == 2 &&
                       window.dilation[axis] == 1 && window.pad_begin[axis] == 0;
    const int at = static_cast<int>(axis) + 2;
    if (!plain || y[at] != x[at] / 2) return false;
  }
  return true;
}

bool supports_forward(const PrepareArgs& args) {
  return halves(std::get<PoolParams>(args.params), args.inputs[0].shape(), args.outputs[0].shape());
}
bool supports_gradient(const PrepareArgs& args) {
  return halves(std::get<PoolParams>(args.params), args.inputs[1].shape(), args.inputs[0].shape());
}

template <class F>
void for_each_plane(const RunArgs& args, const Planes& planes, F&& f) {
  parallel_for(args.threads, planes.count, row_grain(planes.elements()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t plane = begin; plane < end; ++plane) f(plane);
               });
}

// Whether `candidate` takes the place of `best`: larger, or a NaN. Of numbers or of registers.
template <typename T>
auto beats(T candidate, T best) {
  return (candidate > best) | (candidate != candidate);
}
template <typename T>
T better(T best, T candidate) {
  return beats(candidate, best) ? candidate : best;
}

template <typename T>
void pool_row(const T* upper, const T* lower, std::int64_t windows, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < windows; ++i) {
    out[i] = better(better(better(upper[2 * i], upper[2 * i + 1]), lower[2 * i]), lower[2 * i + 1]);
  }
}

template <typename T>
void run_forward(const RunArgs& args) {
  const Planes planes = planes_of(args.inputs[0].shape());
  const T* x = args.inputs[0].as<const T>();
  T* y = args.outputs[0].as<T>();
  const std::int64_t windows = planes.columns / 2;
  for_each_plane(args, planes, [&](std::int64_t plane) {
    for (std::int64_t row = 0; row < planes.rows / 2; ++row) {
      const T* upper = x + plane * planes.elements() + 2 * row * planes.columns;
      pool_row(upper, upper + planes.columns, windows,
               y + plane * planes.out_elements() + row * windows);
    }
  });
}

template <typename T>
using Lanes [[gnu::vector_size(32)]] = T;

// Of a register of windows, their left and right elements, which lie in turn.
template <typename T>
struct Pairs {
  Lanes<T> left;
  Lanes<T> right;
};

template <typename T>
inline constexpr auto kLanes = static_cast<std::int64_t>(sizeof(Lanes<T>) / sizeof(T));

// A whole register.
struct Whole {
  template <typename T>
  static Lanes<T> load(const T* from) {
    Lanes<T> lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes;
  }
  template <typename Register, typename T>
  static void store(const Register& lanes, T* to) {
    std::memcpy(to, &lanes, sizeof(lanes));
  }
  Whole half(std::int64_t) const { return {}; }
};

// Its first `count` lanes, none of them if that is below 1: memory beyond is neither read nor
// written. Masks cost less than copies, or than branches on which element is largest.
struct Some {
  std::int64_t count = 0;

  static __m256i mask(std::int64_t count, const float*) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256i mask(std::int64_t count, const double*) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  Lanes<float> load(const float* from) const { return _mm256_maskload_ps(from, mask(count, from)); }
  Lanes<double> load(const double* from) const {
    return _mm256_maskload_pd(from, mask(count, from));
  }
  void store(const Lanes<float>& lanes, float* to) const {
    _mm256_maskstore_ps(to, mask(count, to), lanes);
  }
  void store(const Lanes<double>& lanes, double* to) const {
    _mm256_maskstore_pd(to, mask(count, to), lanes);
  }
  // Of twice as many elements, those in the first or second register.
  Some half(std::int64_t before) const { return {2 * count - before}; }
};

template <typename T, class Part>
Pairs<T> load_pairs(const T* from, const Part& part) {
  const Lanes<T> a = part.half(0).load(from);
  const Lanes<T> b = part.half(kLanes<T>).load(from + kLanes<T>);
  if constexpr (sizeof(T) == 4) {
    return {.left = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
            .right = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
  } else {
    return {.left = __builtin_shufflevector(a, b, 0, 2, 4, 6),
            .right = __builtin_shufflevector(a, b, 1, 3, 5, 7)};
  }
}

template <typename T, class Part>
void store_pairs(const Pairs<T>& pairs, T* to, const Part& part) {
  Lanes<T> a;
  Lanes<T> b;
  if constexpr (sizeof(T) == 4) {
    a = __builtin_shufflevector(pairs.left, pairs.right, 0, 8, 1, 9, 2, 10, 3, 11);
    b = __builtin_shufflevector(pairs.left, pairs.right, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    a = __builtin_shufflevector(pairs.left, pairs.right, 0, 4, 1, 5);
    b = __builtin_shufflevector(pairs.left, pairs.right, 2, 6, 3, 7);
  }
  part.half(0).store(a, to);
  part.half(kLanes<T>).store(b, to + kLanes<T>);
}

// A register of windows or a part of one; each gradient goes to the first of the maxima, or to the
// last of the NaNs.
template <typename T, class Part>
void spread_windows(const T* upper, const T* lower, const T* dy, T* to_upper, T* to_lower,
                    const Part& part) {
  const auto [a, b] = load_pairs(upper, part);
  const auto [c, d] = load_pairs(lower, part);
  const Lanes<T> gradient = part.load(dy);
  const Lanes<T> zero{};
  const Lanes<T> in_upper = better(a, b);
  const Lanes<T> before_last = better(in_upper, c);
  const Lanes<T> not_last = beats(d, before_last) ? zero : gradient;
  const Lanes<T> not_lower = beats(c, in_upper) ? zero : not_last;
  store_pairs<T>({beats(b, a) ? zero : not_lower, beats(b, a) ? not_lower : zero}, to_upper, part);
  store_pairs<T>({beats(c, in_upper) ? not_last : zero, beats(d, before_last) ? gradient : zero},
                 to_lower, part);
}

template <typename T>
void spread_row(const T* upper, const T* lower, const T* dy, std::int64_t windows, T* to_upper,
                T* to_lower) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= windows; i += kLanes<T>) {
    spread_windows(upper + 2 * i, lower + 2 * i, dy + i, to_upper + 2 * i, to_lower + 2 * i,
                   Whole{});
  }
  if (i == windows) return;
  spread_windows(upper + 2 * i, lower + 2 * i, dy + i, to_upper + 2 * i, to_lower + 2 * i,
                 Some{windows - i});
}

template <typename T>
void run_gradient(const RunArgs& args) {
  const Planes planes = planes_of(args.inputs[1].shape());
  const T* dy = args.inputs[0].as<const T>();
  const T* x = args.inputs[1].as<const T>();
  T* dx = args.outputs[0].as<T>();
  const std::int64_t windows = planes.columns / 2;
  for_each_plane(args, planes, [&](std::int64_t plane) {
    const T* from = x + plane * planes.elements();
    T* to = dx + plane * planes.elements();
    for (std::int64_t row = 0; row < planes.rows / 2; ++row) {
      const std::int64_t upper = 2 * row * planes.columns;
      const std::int64_t lower = upper + planes.columns;
      spread_row(from + upper, from + lower, dy + plane * planes.out_elements() + row * windows,
                 windows, to + upper, to + lower);
      if (planes.columns % 2 != 0) to[lower - 1] = to[lower + planes.columns - 1] = T{0};
    }
    if (planes.rows % 2 != 0)
      std::fill_n(to + planes.elements() - planes.columns, planes.columns, T{0});
  });
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("MaxPool", dtype,
            {.name = "max_pool.halves", .supports = supports_forward, .run = run_forward<T>});
  table.add(
      "MaxPoolGrad", dtype,
      {.name = "max_pool_grad.halves", .supports = supports_gradient, .run = run_gradient<T>});
}

}  // namespace

void add_pool_halves(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
}

}  // namespace trainscope::cpu
