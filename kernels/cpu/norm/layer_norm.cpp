// LayerNormalization, RMSNormalization (the same without a mean) and their gradients over rows
// [rows, width].
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/norm/norm.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {
namespace {

struct Layout {
  std::int64_t rows = 1;
  std::int64_t width = 1;
};

Layout layout_of(const Params& params, const Shape& x) {
  const int axis = std::get<NormParams>(params).axis;
  Layout layout;
  for (int a = 0; a < axis; ++a) layout.rows *= x[a];
  for (int a = axis; a < x.rank; ++a) layout.width *= x[a];
  return layout;
}

bool has_output(std::span<const TensorView> outputs, std::size_t k) {
  return k < outputs.size() && outputs[k].present;
}

// Work on an element in units of simple arithmetic.
constexpr std::int64_t kWorkPerElement = 4;

struct Statistics {
  double mean = 0.0;
  double inverse = 0.0;  // 1 / sqrt(variance + epsilon)
};

// One pass over the row: sums of x - shift and its square in double, where the shift is an element
// of the row, so that nothing cancels. Two halves at once, because additions wait for each other.
// A row that is not centered has the mean 0.
template <typename T>
Statistics row_statistics(const T* x, std::int64_t width, const NormParams& params) {
  if (width == 0) return {};
  const double shift = params.centered ? static_cast<double>(x[0]) : 0.0;
  const std::int64_t half = width / 2;
  double sum = width % 2 == 0 ? 0.0 : static_cast<double>(x[width - 1]) - shift;
  double squares = sum * sum;
  double other_sum = 0.0;
  double other_squares = 0.0;
#pragma omp simd reduction(+ : sum, squares, other_sum, other_squares)
  for (std::int64_t i = 0; i < half; ++i) {
    const double d = static_cast<double>(x[i]) - shift;
    const double e = static_cast<double>(x[half + i]) - shift;
    sum += d;
    squares += d * d;
    other_sum += e;
    other_squares += e * e;
  }
  const auto n = static_cast<double>(width);
  const double mean = params.centered ? (sum + other_sum) / n : 0.0;
  const double variance = (squares + other_squares) / n - mean * mean;
  // `variance > 0` would lose a NaN.
  return {.mean = shift + mean,
          .inverse = 1.0 / std::sqrt((variance < 0.0 ? 0.0 : variance) + params.epsilon)};
}

// --- LayerNormalization(x, scale [, bias]) -> y [, mean, inverse deviation] ----------------------
// x and y are T, all else is what T is computed with.

template <typename T>
void run_layer_norm(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const C>();
  const bool has_bias = args.inputs.size() > 2 && args.inputs[2].present;
  const auto* bias = has_bias ? args.inputs[2].as<const C>() : nullptr;
  auto* y = args.outputs[0].as<T>();
  const Layout layout = layout_of(args.params, args.inputs[0].shape());
  const auto keep = [&](std::size_t output, std::int64_t row, double value) {
    if (has_output(args.outputs, output)) args.outputs[output].as<C>()[row] = static_cast<C>(value);
  };

  const auto normalize = [&](std::int64_t row) {
    const T* from = x + row * layout.width;
    T* to = y + row * layout.width;
    const Statistics statistics = row_statistics(from, layout.width, params);
    keep(1, row, statistics.mean);
    keep(2, row, statistics.inverse);
    const auto mean = static_cast<C>(statistics.mean);
    const auto inverse = static_cast<C>(statistics.inverse);
    if (bias == nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < layout.width; ++i) {
        store(to[i], (computed(from[i]) - mean) * inverse * scale[i]);
      }
      return;
    }
#pragma omp simd
    for (std::int64_t i = 0; i < layout.width; ++i) {
      store(to[i], (computed(from[i]) - mean) * inverse * scale[i] + bias[i]);
    }
  };
  parallel_for(args.threads, layout.rows, row_grain(layout.width * kWorkPerElement),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) normalize(row);
               });
}

// --- LayerNormalizationGrad(dy, x, scale [, addend]) -> dx + addend [, dscale [, dbias]] ---------
// The statistics are recomputed: the row is read anyway and stays in the nearest cache.

// The rows are divided into blocks whose number depends on nothing but the number of rows, so that
// the sums over rows are formed in one order however many threads there are.
struct Blocks {
  std::int64_t count = 1;
  std::int64_t rows = 0;  // of a block; the last one may have fewer
};
Blocks blocks_of(std::int64_t rows) {
  const std::int64_t wanted = std::clamp<std::int64_t>(rows / 32, 1, 32);
  const std::int64_t each = divide_up(rows, wanted);
  return {.count = each == 0 ? 1 : (rows + each - 1) / each, .rows = each};
}

bool sums_wanted(std::span<const TensorView> outputs) {
  return has_output(outputs, 1) || has_output(outputs, 2);
}

// Sums over the rows of a block: of dy * (normalized x) [width], then of dy [width]. A few rows are
// summed in T, their sums in double.
constexpr std::int64_t kRecentRows = 16;
template <typename T>
struct Sums {
  double* total;
  T* recent;
  std::int64_t count;  // 2 * width

  void clear() const {
    std::fill_n(total, count, 0.0);
    std::fill_n(recent, count, T{0});
  }
  void flush() const {
    for (std::int64_t i = 0; i < count; ++i) total[i] += static_cast<double>(recent[i]);
    std::fill_n(recent, count, T{0});
  }
};

// Workspace: the totals of all blocks, then their recent sums.
template <typename C>
Sums<C> sums_of(void* workspace, std::int64_t blocks, std::int64_t block, std::int64_t width) {
  const std::int64_t count = 2 * width;
  auto* totals = static_cast<double*>(workspace);
  auto* recent = reinterpret_cast<C*>(totals + blocks * count);
  return {.total = totals + block * count, .recent = recent + block * count, .count = count};
}

template <typename T>
Prepared prepare_layer_norm_grad(const PrepareArgs& args) {
  if (!sums_wanted(args.outputs)) return {};
  const Layout layout = layout_of(args.params, args.inputs[1].shape());
  const auto sums = static_cast<std::size_t>(blocks_of(layout.rows).count * 2 * layout.width);
  return {.workspace_bytes = sums * (sizeof(double) + sizeof(Computed<T>)), .state = nullptr};
}

template <typename T>
struct GradRow {
  const T* dy;
  const T* x;
  const Computed<T>* scale;
  const T* addend;  // null: none
  T* dx;            // may be dy, x or the addend
  std::int64_t width;
  Computed<T> mean;
  Computed<T> inverse;
  bool centered;
};

// Sums of g = dy * scale and of g * (normalized x): they enter dx divided by the width, so that
// their rounding does not count.
template <typename C>
struct RowSums {
  C g = 0;
  C gx = 0;
};

template <typename T>
RowSums<Computed<T>> row_sums(const GradRow<T>& row) {
  using C = Computed<T>;
  const T* dy = row.dy;
  const T* x = row.x;
  const C* scale = row.scale;
  const C mean = row.mean;
  const C inverse = row.inverse;
  C g_sum = 0;
  C gx_sum = 0;
#pragma omp simd reduction(+ : g_sum, gx_sum)
  for (std::int64_t i = 0; i < row.width; ++i) {
    const C g = computed(dy[i]) * scale[i];
    g_sum += g;
    gx_sum += g * ((computed(x[i]) - mean) * inverse);
  }
  return {.g = g_sum, .gx = gx_sum};
}

// The same, adding to the sums over rows on the way.
template <typename T>
RowSums<Computed<T>> row_sums(const GradRow<T>& row, const Sums<Computed<T>>& sums) {
  using C = Computed<T>;
  const T* dy = row.dy;
  const T* x = row.x;
  const C* scale = row.scale;
  const C mean = row.mean;
  const C inverse = row.inverse;
  C* dscale = sums.recent;
  C* dbias = sums.recent + row.width;
  C g_sum = 0;
  C gx_sum = 0;
#pragma omp simd reduction(+ : g_sum, gx_sum)
  for (std::int64_t i = 0; i < row.width; ++i) {
    const C normalized = (computed(x[i]) - mean) * inverse;
    const C from_above = dy[i];
    const C g = from_above * scale[i];
    g_sum += g;
    gx_sum += g * normalized;
    dscale[i] += from_above * normalized;
    dbias[i] += from_above;
  }
  return {.g = g_sum, .gx = gx_sum};
}

template <typename T>
void write_row(const GradRow<T>& row, const RowSums<Computed<T>>& sums) {
  using C = Computed<T>;
  const T* dy = row.dy;
  const T* x = row.x;
  T* dx = row.dx;
  const C* scale = row.scale;
  const C mean = row.mean;
  const C inverse = row.inverse;
  const C mean_g = row.centered ? sums.g / static_cast<C>(row.width) : C{0};
  const C mean_gx = sums.gx / static_cast<C>(row.width);
  const T* addend = row.addend;
  if (addend != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < row.width; ++i) {
      const C normalized = (computed(x[i]) - mean) * inverse;
      const C from_norm = inverse * (computed(dy[i]) * scale[i] - mean_g - normalized * mean_gx);
      store(dx[i], computed(addend[i]) + from_norm);
    }
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < row.width; ++i) {
    const C normalized = (computed(x[i]) - mean) * inverse;
    store(dx[i], inverse * (computed(dy[i]) * scale[i] - mean_g - normalized * mean_gx));
  }
}

// Output k = the sums of all blocks, in order; `first` is block 0's.
template <typename C>
void sum_blocks(const RunArgs& args, std::int64_t width, std::int64_t blocks, std::size_t k,
                const double* first) {
  if (!has_output(args.outputs, k)) return;
  C* to = args.outputs[k].as<C>();
  parallel_for(args.threads, width, row_grain(blocks), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0.0;
      for (std::int64_t block = 0; block < blocks; ++block) sum += first[block * 2 * width + i];
      to[i] = static_cast<C>(sum);
    }
  });
}

template <typename T>
GradRow<T> grad_row(const RunArgs& args, const Layout& layout, std::int64_t row) {
  const std::int64_t at = row * layout.width;
  const T* x = args.inputs[1].as<const T>() + at;
  const auto& params = std::get<NormParams>(args.params);
  const Statistics statistics = row_statistics(x, layout.width, params);
  const bool has_addend = args.inputs.size() > 3 && args.inputs[3].present;
  return {.dy = args.inputs[0].as<const T>() + at,
          .x = x,
          .scale = args.inputs[2].as<const Computed<T>>(),
          .addend = has_addend ? args.inputs[3].as<const T>() + at : nullptr,
          .dx = args.outputs[0].as<T>() + at,
          .width = layout.width,
          .mean = static_cast<Computed<T>>(statistics.mean),
          .inverse = static_cast<Computed<T>>(statistics.inverse),
          .centered = params.centered};
}

template <typename T>
void run_layer_norm_grad(const RunArgs& args) {
  const Layout layout = layout_of(args.params, args.inputs[1].shape());
  const Blocks blocks = blocks_of(layout.rows);
  const bool with_sums = sums_wanted(args.outputs);

  const auto run_block = [&](std::int64_t block) {
    const auto sums = sums_of<Computed<T>>(args.workspace, blocks.count, block, layout.width);
    if (with_sums) sums.clear();
    const std::int64_t begin = block * blocks.rows;
    const std::int64_t end = std::min(layout.rows, begin + blocks.rows);
    for (std::int64_t r = begin; r < end; ++r) {
      const GradRow<T> row = grad_row<T>(args, layout, r);
      write_row(row, with_sums ? row_sums(row, sums) : row_sums(row));
      const bool last = r + 1 == end || (r + 1 - begin) % kRecentRows == 0;
      if (with_sums && last) sums.flush();
    }
  };
  const std::int64_t work = layout.width * blocks.rows * 2 * kWorkPerElement;
  parallel_for(args.threads, blocks.count, row_grain(work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t block = begin; block < end; ++block) run_block(block);
               });
  const auto* totals = static_cast<const double*>(args.workspace);
  sum_blocks<Computed<T>>(args, layout.width, blocks.count, 1, totals);
  sum_blocks<Computed<T>>(args, layout.width, blocks.count, 2, totals + layout.width);
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  struct Names {
    std::string_view op, kernel, gradient_op, gradient_kernel;
  };
  constexpr Names kNames[] = {
      {"LayerNormalization", "layer_norm.own", "LayerNormalizationGrad", "layer_norm_grad.own"},
      {"RMSNormalization", "rms_norm.own", "RMSNormalizationGrad", "rms_norm_grad.own"}};
  for (const Names& names : kNames) {
    table.add(names.op, dtype, {.name = names.kernel, .run = run_layer_norm<T>});
    table.add(names.gradient_op, dtype,
              {.name = names.gradient_kernel,
               .prepare = prepare_layer_norm_grad<T>,
               .run = run_layer_norm_grad<T>});
  }
}

}  // namespace

void add_layer_norm(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_own<BFloat16>(table);
  add_own<Float16>(table);
}

}  // namespace trainscope::cpu
