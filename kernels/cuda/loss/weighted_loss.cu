// WeightedCrossEntropy with its gradient: class weights and label smoothing, as in PyTorch.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/loss/class_scores.h"

namespace trainscope::cuda {
namespace {

// A weight per class, and what label smoothing e makes of it: 1 - e for the label, e / classes for
// each class.
template <typename T>
struct SmoothedWeights {
  const T* of_class;  // null: each is 1
  std::int64_t classes;
  double label;
  double each;

  __device__ double operator[](std::int64_t c) const {
    return of_class == nullptr ? 1.0 : static_cast<double>(of_class[c]);
  }
  template <class Team>
  __device__ double sum() const {
    if (of_class == nullptr) return static_cast<double>(classes);
    double sum = 0.0;
    for (std::int64_t c = Team::rank(); c < classes; c += Team::size()) {
      sum += static_cast<double>(of_class[c]);
    }
    return Team::sum(sum);
  }
};

template <typename T>
SmoothedWeights<T> smoothed_weights(const RunArgs& args, std::size_t input, std::int64_t classes) {
  const auto& params = std::get<LossParams>(args.params);
  return {.of_class = data_or_null<const T>(args.inputs, input),
          .classes = classes,
          .label = 1.0 - params.label_smoothing,
          .each = params.label_smoothing / static_cast<double>(classes)};
}

// --- WeightedCrossEntropy(logits, labels, weights, divisor) -> loss [, log_sum_exp [, weight]] ---

// Sum over the classes of weight * (log_sum - x).
template <class Team, typename T>
__device__ double smooth_loss(const T* x, const ScoreLayout& layout, double log_sum,
                              const SmoothedWeights<T>& weights) {
  double sum = 0.0;
  for (std::int64_t c = Team::rank(); c < layout.classes; c += Team::size()) {
    sum += weights[c] * (log_sum - static_cast<double>(x[c * layout.inner]));
  }
  return Team::sum(sum);
}

template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    weighted_rows(const T* logits, const ScoreLayout layout, const Labels labels,
                  const SmoothedWeights<T> weights, T* log_sums, RowLoss* rows) {
  for (std::int64_t row = Team::first(); row < layout.rows(); row += Team::teams()) {
    const std::int64_t label = labels[row];
    const LabelKind kind = labels.kind(label);
    const T* x = logits + layout.offset(row);
    const double log_sum = kind == LabelKind::kIgnored ? 0.0 : log_sum_exp<Team>(x, layout);
    RowLoss loss{0.0, 0.0};
    if (kind == LabelKind::kOutside) loss = {not_a_number(), not_a_number()};
    if (kind == LabelKind::kCounted) {
      const double at_label = log_sum - static_cast<double>(x[label * layout.inner]);
      loss = {weights.label * weights[label] * at_label, weights[label]};
      if (weights.each != 0.0) {
        loss.loss += weights.each * smooth_loss<Team>(x, layout, log_sum, weights);
      }
    }
    if (Team::rank() != 0) continue;
    if (log_sums != nullptr) log_sums[row] = static_cast<T>(log_sum);
    rows[row] = loss;
  }
}

template <typename T>
void weighted_cross_entropy(const RunArgs& args) {
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.inputs[0].shape(), params.class_axis);
  auto* rows = static_cast<RowLoss*>(args.workspace);
  with_score_team(layout, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, weighted_rows<Team, T>, args.inputs[0].as<const T>(), layout,
           labels_of(args.inputs[1], layout.classes, params),
           smoothed_weights<T>(args, 2, layout.classes), data_or_null<T>(args.outputs, 1), rows);
  });
  launch_finish_loss<T>(args.call, rows, layout.rows(),
                        {.divisor = data_or_null<const T>(args.inputs, 3),
                         .loss = data_or_null<T>(args.outputs, 0),
                         .weight = data_or_null<T>(args.outputs, 2)});
}

// --- WeightedCrossEntropyGrad(dloss, logits, labels, log_sum_exp, weight, weights) -> dlogits ----

template <typename T>
struct WeightedGrad {
  const T* dloss;
  const T* total_weight;
  const T* logits;
  const T* log_sums;
  T* dlogits;  // may be logits
  ScoreLayout layout;
  Labels labels;
  SmoothedWeights<T> weights;
};

// The derivative of a row's loss by score c is p[c] * A - B[c]: A is the weight of the whole row,
// B[c] what class c has of it. At the label the difference near p = 1 would lose its digits, hence
// expm1.
template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads) weighted_grad_rows(const WeightedGrad<T> a) {
  const T scale = *a.dloss / *a.total_weight;
  const SmoothedWeights<T>& weights = a.weights;
  const double total = weights.template sum<Team>();
  for (std::int64_t row = Team::first(); row < a.layout.rows(); row += Team::teams()) {
    const std::int64_t label = a.labels[row];
    const LabelKind kind = a.labels.kind(label);
    const bool counted = kind == LabelKind::kCounted;
    const std::int64_t at = a.layout.offset(row);
    const T log_sum = a.log_sums[row];
    const T filled = kind == LabelKind::kOutside ? static_cast<T>(not_a_number()) : T{0};
    const double of_label = counted ? weights[label] : 0.0;
    const auto whole = static_cast<T>(weights.label * of_label + weights.each * total);
    const auto missing = static_cast<T>(weights.each * (total - of_label));
    for (std::int64_t c = Team::rank(); c < a.layout.classes; c += Team::size()) {
      const std::int64_t i = at + c * a.layout.inner;
      T value = filled;
      if (counted) {
        const T exponent = a.logits[i] - log_sum;
        const auto own = static_cast<T>(weights.each * weights[c]);
        value = c == label ? (std::expm1(exponent) * whole + missing) * scale
                           : (std::exp(exponent) * whole - own) * scale;
      }
      a.dlogits[i] = value;
    }
  }
}

template <typename T>
void weighted_cross_entropy_grad(const RunArgs& args) {
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.inputs[1].shape(), params.class_axis);
  const WeightedGrad<T> gradient{.dloss = args.inputs[0].as<const T>(),
                                 .total_weight = args.inputs[4].as<const T>(),
                                 .logits = args.inputs[1].as<const T>(),
                                 .log_sums = args.inputs[3].as<const T>(),
                                 .dlogits = args.outputs[0].as<T>(),
                                 .layout = layout,
                                 .labels = labels_of(args.inputs[2], layout.classes, params),
                                 .weights = smoothed_weights<T>(args, 5, layout.classes)};
  with_score_team(layout, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, weighted_grad_rows<Team, T>, gradient);
  });
}

}  // namespace

void add_weighted_loss(KernelTable& table) {
  table.add("WeightedCrossEntropy", DType::kF32,
            {.name = "weighted_cross_entropy.cuda",
             .prepare = prepare_row_losses,
             .run = weighted_cross_entropy<float>});
  table.add(
      "WeightedCrossEntropyGrad", DType::kF32,
      {.name = "weighted_cross_entropy_grad.cuda", .run = weighted_cross_entropy_grad<float>});
}

}  // namespace trainscope::cuda
