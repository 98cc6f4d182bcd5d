// Softmax, LogSoftmax and their gradients over one axis of [outer, n, inner].
#include "kernels/cpu/attention/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/cpu/attention/row_sums.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

struct Layout {
  std::int64_t outer = 1;
  std::int64_t n = 1;
  std::int64_t inner = 1;
};

Layout layout_of(const RunArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  const Shape& shape = args.outputs[0].shape();
  Layout layout;
  layout.n = shape.rank == 0 ? 1 : shape[axis];
  for (int a = 0; a < axis; ++a) layout.outer *= shape[a];
  for (int a = axis + 1; a < shape.rank; ++a) layout.inner *= shape[a];
  return layout;
}

// --- Rows: inner = 1 -----------------------------------------------------------------------------
// A row of -inf gives NaN (-inf minus -inf), and so does any NaN in the row, as in PyTorch.

template <typename T>
void softmax_row(const T* x, T* y, std::int64_t n) {
  const T largest = largest_of(x, n);
  const double sum =
      sum_of<T>(n, [=](std::int64_t i) { return y[i] = vector_exp(x[i] - largest); });
  const T factor = static_cast<T>(1.0 / sum);
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

template <typename T>
void log_softmax_row(const T* x, T* y, std::int64_t n) {
  const T largest = largest_of(x, n);
  const double sum = sum_of<T>(n, [=](std::int64_t i) { return vector_exp(x[i] - largest); });
  const T log_sum = static_cast<T>(std::log(sum));
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - largest) - log_sum;
}

template <typename T>
void softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n) {
  const auto sum = static_cast<T>(sum_of<T>(n, [=](std::int64_t i) { return dy[i] * y[i]; }));
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - sum);
}

template <typename T>
void log_softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n) {
  const auto sum = static_cast<T>(sum_of<T>(n, [=](std::int64_t i) { return dy[i]; }));
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] - vector_exp(y[i]) * sum;
}

// --- Columns: `width` neighbouring ones of [n, stride] at a time --------------------------------

constexpr std::int64_t kColumns = 64;

// Sums of f(offset) over n rows per column, in double.
template <class F>
void column_sums(std::int64_t n, std::int64_t stride, std::int64_t width, double* sums, F f) {
  std::fill_n(sums, width, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      sums[c] += static_cast<double>(f(i * stride + c, c));
    }
  }
}

template <typename T>
void largest_of_columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width,
                        T* largest) {
  std::fill_n(largest, width, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      const T value = x[i * stride + c];
      largest[c] = value > largest[c] ? value : largest[c];
    }
  }
}

// f(offset, column) for each element.
template <class F>
void for_each_element(std::int64_t n, std::int64_t stride, std::int64_t width, F f) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) f(i * stride + c, c);
  }
}

template <typename T>
void softmax_columns(const T* x, T* y, const Layout& layout, std::int64_t width) {
  T largest[kColumns];
  double sums[kColumns];
  largest_of_columns(x, layout.n, layout.inner, width, largest);
  column_sums(layout.n, layout.inner, width, sums, [&](std::int64_t at, std::int64_t c) {
    return y[at] = vector_exp(x[at] - largest[c]);
  });
  for_each_element(layout.n, layout.inner, width, [&](std::int64_t at, std::int64_t c) {
    y[at] = static_cast<T>(static_cast<double>(y[at]) / sums[c]);
  });
}

template <typename T>
void log_softmax_columns(const T* x, T* y, const Layout& layout, std::int64_t width) {
  T largest[kColumns];
  double sums[kColumns];
  largest_of_columns(x, layout.n, layout.inner, width, largest);
  column_sums(layout.n, layout.inner, width, sums,
              [&](std::int64_t at, std::int64_t c) { return vector_exp(x[at] - largest[c]); });
  T log_sums[kColumns];
  for (std::int64_t c = 0; c < width; ++c) log_sums[c] = static_cast<T>(std::log(sums[c]));
  for_each_element(layout.n, layout.inner, width, [&](std::int64_t at, std::int64_t c) {
    y[at] = (x[at] - largest[c]) - log_sums[c];
  });
}

template <typename T>
void softmax_grad_columns(const T* dy, const T* y, T* dx, const Layout& layout,
                          std::int64_t width) {
  double sums[kColumns];
  column_sums(layout.n, layout.inner, width, sums,
              [&](std::int64_t at, std::int64_t) { return dy[at] * y[at]; });
  for_each_element(layout.n, layout.inner, width, [&](std::int64_t at, std::int64_t c) {
    dx[at] = y[at] * (dy[at] - static_cast<T>(sums[c]));
  });
}

template <typename T>
void log_softmax_grad_columns(const T* dy, const T* y, T* dx, const Layout& layout,
                              std::int64_t width) {
  double sums[kColumns];
  column_sums(layout.n, layout.inner, width, sums,
              [&](std::int64_t at, std::int64_t) { return dy[at]; });
  for_each_element(layout.n, layout.inner, width, [&](std::int64_t at, std::int64_t c) {
    dx[at] = dy[at] - vector_exp(y[at]) * static_cast<T>(sums[c]);
  });
}

// --- Kernels -------------------------------------------------------------------------------------

// Elements of transcendental functions cost about as much as 8 of simple arithmetic.
constexpr std::int64_t kWorkPerElement = 8;

// row(offset) for each row, or columns(offset, width) for each group of columns.
template <class Row, class Columns>
void for_each_vector(const RunArgs& args, const Layout& layout, Row row, Columns columns) {
  const std::int64_t grain = row_grain(layout.n * kWorkPerElement);
  if (layout.inner == 1) {
    parallel_for(args.threads, layout.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) row(i * layout.n);
    });
    return;
  }
  const std::int64_t groups = (layout.inner + kColumns - 1) / kColumns;
  const auto group = [&](std::int64_t index) {
    const std::int64_t first = index % groups * kColumns;
    const std::int64_t block = index / groups * layout.n * layout.inner;
    columns(block + first, std::min(kColumns, layout.inner - first));
  };
  parallel_for(args.threads, layout.outer * groups, std::max<std::int64_t>(1, grain / kColumns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) group(i);
               });
}

template <typename T>
void run_softmax(const RunArgs& args) {
  const auto* x = args.inputs[0].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const Layout layout = layout_of(args);
  for_each_vector(
      args, layout, [&](std::int64_t at) { softmax_row(x + at, y + at, layout.n); },
      [&](std::int64_t at, std::int64_t width) { softmax_columns(x + at, y + at, layout, width); });
}

template <typename T>
void run_log_softmax(const RunArgs& args) {
  const auto* x = args.inputs[0].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const Layout layout = layout_of(args);
  for_each_vector(
      args, layout, [&](std::int64_t at) { log_softmax_row(x + at, y + at, layout.n); },
      [&](std::int64_t at, std::int64_t width) {
        log_softmax_columns(x + at, y + at, layout, width);
      });
}

template <typename T>
void run_softmax_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* y = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Layout layout = layout_of(args);
  for_each_vector(
      args, layout, [&](std::int64_t at) { softmax_grad_row(dy + at, y + at, dx + at, layout.n); },
      [&](std::int64_t at, std::int64_t width) {
        softmax_grad_columns(dy + at, y + at, dx + at, layout, width);
      });
}

template <typename T>
void run_log_softmax_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* y = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Layout layout = layout_of(args);
  for_each_vector(
      args, layout,
      [&](std::int64_t at) { log_softmax_grad_row(dy + at, y + at, dx + at, layout.n); },
      [&](std::int64_t at, std::int64_t width) {
        log_softmax_grad_columns(dy + at, y + at, dx + at, layout, width);
      });
}

template <typename T>
constexpr Kernel kSoftmax{.name = "softmax.own", .run = run_softmax<T>};
template <typename T>
constexpr Kernel kLogSoftmax{.name = "log_softmax.own", .run = run_log_softmax<T>};
template <typename T>
constexpr Kernel kSoftmaxGrad{.name = "softmax_grad.own", .run = run_softmax_grad<T>};
template <typename T>
constexpr Kernel kLogSoftmaxGrad{.name = "log_softmax_grad.own", .run = run_log_softmax_grad<T>};

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Softmax", dtype, kSoftmax<T>);
  table.add("LogSoftmax", dtype, kLogSoftmax<T>);
  table.add("SoftmaxGrad", dtype, kSoftmaxGrad<T>);
  table.add("LogSoftmaxGrad", dtype, kLogSoftmaxGrad<T>);
}

}  // namespace

void add_softmax(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_upcast<kSoftmax<float>>(table, "Softmax", "softmax.upcast");
  add_upcast<kLogSoftmax<float>>(table, "LogSoftmax", "log_softmax.upcast");
  add_upcast<kSoftmaxGrad<float>>(table, "SoftmaxGrad", "softmax_grad.upcast");
  add_upcast<kLogSoftmaxGrad<float>>(table, "LogSoftmaxGrad", "log_softmax_grad.upcast");
}

}  // namespace trainscope::cpu
