// Scores of classes and the labels that name one of them: what the losses over classes share.
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/thread_team.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {

// Scores are [outer, classes, inner], labels [outer, inner]; row r is label r's scores.
struct ScoreLayout {
  std::int64_t outer = 1;
  std::int64_t classes = 1;
  std::int64_t inner = 1;

  __host__ __device__ std::int64_t rows() const { return outer * inner; }
  // Of row r's class 0; its classes are `inner` elements apart.
  __device__ std::int64_t offset(std::int64_t row) const {
    return inner == 1 ? row * classes : (row / inner) * classes * inner + row % inner;
  }
};

inline ScoreLayout score_layout(const Shape& scores, int class_axis) {
  ScoreLayout layout;
  for (int a = 0; a < scores.rank; ++a) {
    std::int64_t& extent = a < class_axis    ? layout.outer
                           : a == class_axis ? layout.classes
                                             : layout.inner;
    extent *= scores[a];
  }
  return layout;
}

enum class LabelKind : std::uint8_t { kCounted, kIgnored, kOutside };

struct Labels {
  const void* data;
  bool is_i32;
  std::int64_t classes;
  std::int64_t ignore_index;

  __device__ std::int64_t operator[](std::int64_t row) const {
    return is_i32 ? std::int64_t{static_cast<const std::int32_t*>(data)[row]}
                  : static_cast<const std::int64_t*>(data)[row];
  }
  __device__ LabelKind kind(std::int64_t label) const {
    if (label == ignore_index) return LabelKind::kIgnored;
    return label >= 0 && label < classes ? LabelKind::kCounted : LabelKind::kOutside;
  }
};

inline Labels labels_of(const TensorView& view, std::int64_t classes, const LossParams& params) {
  return {.data = view.data,
          .is_i32 = view.type.dtype == DType::kI32,
          .classes = classes,
          .ignore_index = params.ignore_index};
}

__device__ inline double not_a_number() { return static_cast<double>(__int_as_float(0x7FC00000)); }

// What one row adds to the loss, and to what the loss is divided by.
struct RowLoss {
  double loss;
  double weight;
};

// Calls run(team, grid) with the team that computes a row.
template <class Run>
void with_score_team(const ScoreLayout& layout, Run run) {
  with_row_team(layout.rows(), layout.classes, layout.inner, run);
}

// What a thread knows of the scores that it has read: their largest, and the sum of
// exp(score - largest).
template <typename C>
struct ScoresSoFar {
  C largest = -static_cast<C>(INFINITY);
  double sum = 0.0;

  // The terms of four scores are added up in C, four by four in double. A score of -inf adds
  // nothing, a NaN makes the sum one.
  __device__ void add(const C (&scores)[4]) {
    C most = largest;
#pragma unroll
    for (C score : scores) most = larger(most, score);
    if (most != largest) {
      sum *= static_cast<double>(std::exp(largest - most));
      largest = most;
    }
    C terms = 0;
#pragma unroll
    for (C score : scores) {
      terms += score == -static_cast<C>(INFINITY) ? C{0} : std::exp(score - most);
    }
    sum += static_cast<double>(terms);
  }
};

// log(sum(exp(x))) of a row, stable: known to all of the team. The row is read once: many rows
// together do not fit into a cache. A row of -inf gives NaN.
template <class Team, typename T>
__device__ double log_sum_exp(const T* x, const ScoreLayout& layout) {
  using C = Computed<T>;
  constexpr C kLeast = -static_cast<C>(INFINITY);
  ScoresSoFar<C> own;
  for (std::int64_t first = Team::rank(); first < layout.classes; first += 4 * Team::size()) {
    C scores[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t c = first + k * Team::size();
      scores[k] = c < layout.classes ? static_cast<C>(x[c * layout.inner]) : kLeast;
    }
    own.add(scores);
  }
  const C largest = Team::max(own.largest, kLeast);
  if (largest == kLeast) return not_a_number();
  const double sum = Team::sum(own.sum * static_cast<double>(std::exp(own.largest - largest)));
  return static_cast<double>(largest) + std::log(sum);
}

// Output 0: the sum of the rows' losses, divided by `divisor` or else by the sum of their weights;
// output `weight`: that sum. Any of them may be null.
template <typename C>
struct LossOutputs {
  const C* divisor;
  C* loss;
  C* weight;
};

inline constexpr unsigned kFinishLossThreads = 1024;

// One block, which adds up the rows in an order of its own. 0/0 without rows that count. Bytes: 16
// a row read. FLOPs: 2 a row.
template <typename C>
__global__ void __launch_bounds__(kFinishLossThreads)
    finish_loss(const RowLoss* rows, std::int64_t count, const LossOutputs<C> outputs) {
  double sums[2] = {0.0, 0.0};
  for (std::int64_t row = threadIdx.x; row < count; row += blockDim.x) {
    sums[0] += rows[row].loss;
    sums[1] += rows[row].weight;
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  const double divisor =
      outputs.divisor == nullptr ? sums[1] : static_cast<double>(*outputs.divisor);
  if (outputs.loss != nullptr) *outputs.loss = static_cast<C>(sums[0] / divisor);
  if (outputs.weight != nullptr) *outputs.weight = static_cast<C>(sums[1]);
}

template <typename C>
void launch_finish_loss(const CallContext& call, const RowLoss* rows, std::int64_t count,
                        const LossOutputs<C>& outputs) {
  launch(call, {.blocks = dim3(1), .threads = dim3(kFinishLossThreads)}, finish_loss<C>, rows,
         count, outputs);
}

// Of each row's loss.
inline Prepared prepare_row_losses(const PrepareArgs& args) {
  const auto& params = std::get<LossParams>(args.params);
  const std::int64_t rows = score_layout(args.inputs[0].shape(), params.class_axis).rows();
  return {.workspace_bytes = static_cast<std::size_t>(rows) * sizeof(RowLoss), .state = nullptr};
}

}  // namespace trainscope::cuda
