// MaxPool and its gradient where windows of 2 x 2 lie side by side, as most networks have them:
// four loads and three comparisons for a window, a register of windows at a time.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/support/parallel.h"

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

Support halves(const PoolParams& params, const Shape& x, const Shape& y) {
  constexpr Support kOther{"not windows of 2 x 2 side by side"};
  const WindowParams& window = params.window;
  if (window.rank != 2) return kOther;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const bool plain = window.kernel[axis] == 2 && window.stride[axis] == 2 &&
                       window.dilation[axis] == 1 && window.pad_begin[axis] == 0;
    const int at = static_cast<int>(axis) + 2;
    if (!plain || y[at] != x[at] / 2) return kOther;
  }
  return {};
}

Support supports_forward(const PrepareArgs& args) {
  if (args.outputs.size() != 1) return {"places are asked for"};
  return halves(std::get<PoolParams>(args.params), args.inputs[0].shape(), args.outputs[0].shape());
}
Support supports_gradient(const PrepareArgs& args) {
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

// Of some windows, their left and right elements, which lie in turn.
template <class Unit>
struct Pairs {
  typename Unit::Lanes left;
  typename Unit::Lanes right;
};

// Windows that are worked on at once: as many as a register of kBytes has lanes.
template <typename T, int kBytes>
struct Register {
  using Lanes [[gnu::vector_size(kBytes)]] = T;
  static constexpr auto kWindows = static_cast<std::int64_t>(kBytes / sizeof(T));

  static Lanes load(const T* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes;
  }
  static void store(const Lanes& lanes, T* to) { std::memcpy(to, &lanes, sizeof(lanes)); }

  static Pairs<Register> load_pairs(const T* from) {
    const Lanes a = load(from);
    const Lanes b = load(from + kWindows);
    if constexpr (kWindows == 8) {
      return {.left = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
              .right = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
    } else if constexpr (kWindows == 4) {
      return {.left = __builtin_shufflevector(a, b, 0, 2, 4, 6),
              .right = __builtin_shufflevector(a, b, 1, 3, 5, 7)};
    } else {
      return {.left = __builtin_shufflevector(a, b, 0, 2),
              .right = __builtin_shufflevector(a, b, 1, 3)};
    }
  }
  static void store_pairs(const Pairs<Register>& pairs, T* to) {
    const auto& [left, right] = pairs;
    if constexpr (kWindows == 8) {
      store(__builtin_shufflevector(left, right, 0, 8, 1, 9, 2, 10, 3, 11), to);
      store(__builtin_shufflevector(left, right, 4, 12, 5, 13, 6, 14, 7, 15), to + kWindows);
    } else if constexpr (kWindows == 4) {
      store(__builtin_shufflevector(left, right, 0, 4, 1, 5), to);
      store(__builtin_shufflevector(left, right, 2, 6, 3, 7), to + kWindows);
    } else {
      store(__builtin_shufflevector(left, right, 0, 2), to);
      store(__builtin_shufflevector(left, right, 1, 3), to + kWindows);
    }
  }
};

template <typename T>
struct OneWindow {
  using Lanes = T;
  static constexpr std::int64_t kWindows = 1;

  static T load(const T* from) { return *from; }
  static void store(T value, T* to) { *to = value; }
  static Pairs<OneWindow> load_pairs(const T* from) { return {.left = from[0], .right = from[1]}; }
  static void store_pairs(const Pairs<OneWindow>& pairs, T* to) {
    to[0] = pairs.left;
    to[1] = pairs.right;
  }
};

// Calls f(Unit{}, first window) until all windows of a row were covered. The last register ends
// with the row: some windows are done twice, which costs less than masks do.
template <class Unit, class F>
void cover_by(std::int64_t windows, F&& f) {
  for (std::int64_t i = 0; i < windows; i += Unit::kWindows) {
    f(Unit{}, std::min(i, windows - Unit::kWindows));
  }
}
template <typename T, class F>
void cover_row(std::int64_t windows, F&& f) {
  if (windows >= Register<T, 32>::kWindows) return cover_by<Register<T, 32>>(windows, f);
  if (windows >= Register<T, 16>::kWindows) return cover_by<Register<T, 16>>(windows, f);
  cover_by<OneWindow<T>>(windows, f);
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
      T* out = y + plane * planes.out_elements() + row * windows;
      cover_row<T>(windows, [&](auto unit, std::int64_t i) {
        const auto [a, b] = unit.load_pairs(upper + 2 * i);
        const auto [c, d] = unit.load_pairs(upper + planes.columns + 2 * i);
        unit.store(better(better(better(a, b), c), d), out + i);
      });
    }
  });
}

// Each gradient goes to the first of the maxima, or to the last of the NaNs.
template <class Unit, typename T>
void spread_windows(const T* upper, const T* lower, const T* dy, T* to_upper, T* to_lower) {
  using Lanes = typename Unit::Lanes;
  const auto [a, b] = Unit::load_pairs(upper);
  const auto [c, d] = Unit::load_pairs(lower);
  const Lanes gradient = Unit::load(dy);
  const Lanes zero{};
  const Lanes in_upper = better(a, b);
  const Lanes before_last = better(in_upper, c);
  const Lanes not_last = beats(d, before_last) ? zero : gradient;
  const Lanes not_lower = beats(c, in_upper) ? zero : not_last;
  Unit::store_pairs({beats(b, a) ? zero : not_lower, beats(b, a) ? not_lower : zero}, to_upper);
  Unit::store_pairs({beats(c, in_upper) ? not_last : zero, beats(d, before_last) ? gradient : zero},
                    to_lower);
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
    const T* gradients = dy + plane * planes.out_elements();
    T* to = dx + plane * planes.elements();
    for (std::int64_t row = 0; row < planes.rows / 2; ++row) {
      const std::int64_t upper = 2 * row * planes.columns;
      const std::int64_t lower = upper + planes.columns;
      cover_row<T>(windows, [&](auto unit, std::int64_t i) {
        spread_windows<decltype(unit)>(from + upper + 2 * i, from + lower + 2 * i,
                                       gradients + row * windows + i, to + upper + 2 * i,
                                       to + lower + 2 * i);
      });
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
