// Softmax, LogSoftmax and their gradients over one axis of [outer, n, inner]. A row whose elements
// are next to each other is computed by a warp or a block, of others a thread computes a row.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/thread_team.h"

namespace trainscope::cuda {
namespace {

struct SoftmaxLayout {
  std::int64_t outer = 1;
  std::int64_t n = 1;
  std::int64_t inner = 1;

  __host__ __device__ std::int64_t rows() const { return outer * inner; }
  __device__ std::int64_t offset(std::int64_t row) const {
    return inner == 1 ? row * n : row / inner * n * inner + row % inner;
  }
};

SoftmaxLayout softmax_layout(const RunArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  const Shape& shape = args.outputs[0].shape();
  SoftmaxLayout layout;
  layout.n = shape.rank == 0 ? 1 : shape[axis];
  for (int a = 0; a < axis; ++a) layout.outer *= shape[a];
  for (int a = axis + 1; a < shape.rank; ++a) layout.inner *= shape[a];
  return layout;
}

// Sum of f(i) over a row, i being offsets of its elements: of a thread in C, of the team in double.
template <class Team, typename C, class F>
__device__ double sum_of_row(const SoftmaxLayout& layout, std::int64_t at, F f) {
  constexpr int kRecent = 64;  // terms that are added up in C
  double sum = 0.0;
  C recent = 0;
  int terms = 0;
  for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
    recent += f(at + i * layout.inner);
    if (++terms % kRecent != 0) continue;
    sum += static_cast<double>(recent);
    recent = 0;
  }
  return Team::sum(sum + static_cast<double>(recent));
}

template <class Team, typename T>
__device__ Computed<T> largest_of_row(const T* x, const SoftmaxLayout& layout, std::int64_t at) {
  using C = Computed<T>;
  const C least = -static_cast<C>(INFINITY);
  C largest = least;
  for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
    largest = larger(largest, static_cast<C>(x[at + i * layout.inner]));
  }
  return Team::max(largest, least);
}

// --- Rows: what each op does to one --------------------------------------------------------------
// Each reads its row again from a cache. A row of -inf gives NaN, and so does any NaN in the row.

// x -> y, which may be x
template <class Team, typename T>
struct SoftmaxRow {
  __device__ static void run(const T* x, const T*, T* y, const SoftmaxLayout& layout,
                             std::int64_t at) {
    using C = Computed<T>;
    const C largest = largest_of_row<Team>(x, layout, at);
    const double sum = sum_of_row<Team, C>(
        layout, at, [=](std::int64_t i) { return std::exp(static_cast<C>(x[i]) - largest); });
    const C factor = static_cast<C>(1.0 / sum);
    for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
      const std::int64_t e = at + i * layout.inner;
      y[e] = static_cast<T>(std::exp(static_cast<C>(x[e]) - largest) * factor);
    }
  }
};

template <class Team, typename T>
struct LogSoftmaxRow {
  __device__ static void run(const T* x, const T*, T* y, const SoftmaxLayout& layout,
                             std::int64_t at) {
    using C = Computed<T>;
    const C largest = largest_of_row<Team>(x, layout, at);
    const double sum = sum_of_row<Team, C>(
        layout, at, [=](std::int64_t i) { return std::exp(static_cast<C>(x[i]) - largest); });
    const C log_sum = static_cast<C>(std::log(sum));
    for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
      const std::int64_t e = at + i * layout.inner;
      y[e] = static_cast<T>((static_cast<C>(x[e]) - largest) - log_sum);
    }
  }
};

// dy, y -> dx, which may be either
template <class Team, typename T>
struct SoftmaxGradRow {
  __device__ static void run(const T* dy, const T* y, T* dx, const SoftmaxLayout& layout,
                             std::int64_t at) {
    using C = Computed<T>;
    const C sum = static_cast<C>(sum_of_row<Team, C>(
        layout, at, [=](std::int64_t i) { return static_cast<C>(dy[i]) * static_cast<C>(y[i]); }));
    for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
      const std::int64_t e = at + i * layout.inner;
      dx[e] = static_cast<T>(static_cast<C>(y[e]) * (static_cast<C>(dy[e]) - sum));
    }
  }
};

template <class Team, typename T>
struct LogSoftmaxGradRow {
  __device__ static void run(const T* dy, const T* y, T* dx, const SoftmaxLayout& layout,
                             std::int64_t at) {
    using C = Computed<T>;
    const C sum = static_cast<C>(
        sum_of_row<Team, C>(layout, at, [=](std::int64_t i) { return static_cast<C>(dy[i]); }));
    for (std::int64_t i = Team::rank(); i < layout.n; i += Team::size()) {
      const std::int64_t e = at + i * layout.inner;
      dx[e] = static_cast<T>(static_cast<C>(dy[e]) - std::exp(static_cast<C>(y[e])) * sum);
    }
  }
};

// Bytes: each operand once; what a row is read again for comes from L1 or L2: Softmax reads x three
// times (maximum, sum, result), SoftmaxGrad dy and y twice (sum, result). The result is written
// once.
template <class Team, class Row, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    softmax_rows(const T* first, const T* second, T* result, const SoftmaxLayout layout) {
  for (std::int64_t row = Team::first(); row < layout.rows(); row += Team::teams()) {
    Row::run(first, second, result, layout, layout.offset(row));
  }
}

template <template <class, class> class Row, typename T>
void run_rows(const RunArgs& args) {
  const SoftmaxLayout layout = softmax_layout(args);
  const T* second = args.inputs.size() > 1 ? args.inputs[1].as<const T>() : nullptr;
  with_row_team(layout.rows(), layout.n, layout.inner, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, softmax_rows<Team, Row<Team, T>, T>, args.inputs[0].as<const T>(),
           second, args.outputs[0].as<T>(), layout);
  });
}

template <typename T>
void add_softmax_for(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Softmax", dtype, {.name = "softmax.cuda", .run = run_rows<SoftmaxRow, T>});
  table.add("LogSoftmax", dtype, {.name = "log_softmax.cuda", .run = run_rows<LogSoftmaxRow, T>});
  table.add("SoftmaxGrad", dtype,
            {.name = "softmax_grad.cuda", .run = run_rows<SoftmaxGradRow, T>});
  table.add("LogSoftmaxGrad", dtype,
            {.name = "log_softmax_grad.cuda", .run = run_rows<LogSoftmaxGradRow, T>});
}

}  // namespace

void add_softmax(KernelTable& table) {
  add_softmax_for<float>(table);
  add_softmax_for<BFloat16>(table);
  add_softmax_for<Float16>(table);
}

}  // namespace trainscope::cuda
