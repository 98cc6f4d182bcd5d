// WeightedCrossEntropy with its gradient: class weights and label smoothing, as in PyTorch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/api/kernel.h"
#include "kernels/cpu/loss/class_scores.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What the rows of one block add to the loss and to what it is divided by.
struct Partial {
  double loss = 0.0;
  double weight = 0.0;
};

// A weight per class; none means that each is 1.
template <typename T>
struct Weights {
  const T* of_class = nullptr;
  std::int64_t classes = 0;

  Weights(std::span<const TensorView> inputs, std::size_t index, std::int64_t count)
      : classes(count) {
    if (index < inputs.size() && inputs[index].present) of_class = inputs[index].as<const T>();
  }
  double operator[](std::int64_t c) const {
    return of_class == nullptr ? 1.0 : static_cast<double>(of_class[c]);
  }
  double sum() const {
    if (of_class == nullptr) return static_cast<double>(classes);
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) sum += static_cast<double>(of_class[c]);
    return sum;
  }
};

// With e = label_smoothing: 1 - e for the label, e / classes for each class.
struct Smoothing {
  double label;
  double each;

  Smoothing(const LossParams& params, std::int64_t classes)
      : label(1.0 - params.label_smoothing),
        each(params.label_smoothing / static_cast<double>(classes)) {}
};

// A row's loss: label's share times weight times (log_sum - x[label]), and so for every class.
template <typename T>
double row_loss(const T* x, const ScoreLayout& layout, double log_sum, std::int64_t label,
                const Weights<T>& weights, const Smoothing& smoothing) {
  const double at_label = log_sum - static_cast<double>(x[label * layout.inner]);
  double loss = smoothing.label * weights[label] * at_label;
  if (smoothing.each == 0.0) return loss;
  double all = 0.0;
  for (std::int64_t c = 0; c < layout.classes; ++c) {
    all += weights[c] * (log_sum - static_cast<double>(x[c * layout.inner]));
  }
  return loss + smoothing.each * all;
}

Prepared prepare(const PrepareArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const std::int64_t rows = score_layout(a.inputs[0].shape(), params.class_axis).rows();
  return {.workspace_bytes = static_cast<std::size_t>(score_blocks(rows)) * sizeof(Partial),
          .state = nullptr};
}

bool has_output(const RunArgs& a, std::size_t output) {
  return output < a.outputs.size() && a.outputs[output].present;
}

// logits [outer, classes, inner], labels [outer, inner], weights [classes], divisor [] -> loss [],
// log_sum_exp [outer, inner], total weight [].
template <typename T>
void weighted_cross_entropy(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.inputs[0].shape(), params.class_axis);
  const Labels labels{a.inputs[1], layout.classes, params.ignore_index};
  const Weights<T> weights(a.inputs, 2, layout.classes);
  const Smoothing smoothing(params, layout.classes);
  const T* logits = a.inputs[0].as<const T>();
  T* kept = has_output(a, 1) ? a.outputs[1].as<T>() : nullptr;
  auto* partials = static_cast<Partial*>(a.workspace);
  const std::int64_t rows = layout.rows();
  const std::int64_t blocks = score_blocks(rows);

  const auto block = [&](std::int64_t b) {
    const std::int64_t begin = b * kScoreRows;
    const std::int64_t end = std::min(rows, begin + kScoreRows);
    double log_sums[kScoreRows];
    block_log_sum_exp(logits, layout, labels, begin, end, log_sums);
    Partial partial;
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t label = labels[r];
      const double log_sum = log_sums[r - begin];
      if (kept != nullptr) kept[r] = static_cast<T>(log_sum);
      const LabelKind kind = labels.kind(label);
      if (kind == LabelKind::kIgnored) continue;
      const bool counted = kind == LabelKind::kCounted;
      const T* x = logits + layout.offset(r);
      partial.weight += counted ? weights[label] : kNaN;
      partial.loss += counted ? row_loss(x, layout, log_sum, label, weights, smoothing) : kNaN;
    }
    partials[b] = partial;
  };
  parallel_for(a.threads, blocks, row_grain(kScoreRows * layout.classes),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t b = first; b < last; ++b) block(b);
               });
  Partial sum;  // in the order of the blocks, whichever threads made them
  for (std::int64_t b = 0; b < blocks; ++b) {
    sum.loss += partials[b].loss;
    sum.weight += partials[b].weight;
  }
  const bool divided = a.inputs.size() > 3 && a.inputs[3].present;
  const double divisor = divided ? static_cast<double>(*a.inputs[3].as<const T>()) : sum.weight;
  if (a.outputs[0].present) *a.outputs[0].as<T>() = static_cast<T>(sum.loss / divisor);
  if (has_output(a, 2)) *a.outputs[2].as<T>() = static_cast<T>(sum.weight);
}

// The derivative of a row's loss by score c is p[c] * A - B[c]: A is the weight of the whole row,
// B[c] what class c has of it. At the label the difference near p = 1 would lose its digits, hence
// expm1.
template <typename T>
struct RowGradient {
  const ScoreLayout& layout;
  const Weights<T>& weights;
  Smoothing smoothing;
  double total;  // of the weights of all classes
  T scale;

  void operator()(const T* x, T* dx, T log_sum, std::int64_t label) const {
    const double of_label = smoothing.label * weights[label];
    const double of_row = of_label + smoothing.each * total;
    const auto a = static_cast<T>(of_row);
    const std::int64_t at = label * layout.inner;
    const T missing = static_cast<T>(smoothing.each * (total - weights[label]));
    const T label_element = (std::expm1(x[at] - log_sum) * a + missing) * scale;
    for (std::int64_t c = 0; c < layout.classes; ++c) {
      const auto b = static_cast<T>(smoothing.each * weights[c]);
      dx[c * layout.inner] = (vector_exp(x[c * layout.inner] - log_sum) * a - b) * scale;
    }
    dx[at] = label_element;
  }
};

// dloss [], logits, labels, log_sum_exp, total weight [], weights -> dlogits, which may be logits.
template <typename T>
void weighted_cross_entropy_grad(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.inputs[1].shape(), params.class_axis);
  const Labels labels{a.inputs[2], layout.classes, params.ignore_index};
  const Weights<T> weights(a.inputs, 5, layout.classes);
  const RowGradient<T> gradient{.layout = layout,
                                .weights = weights,
                                .smoothing = Smoothing(params, layout.classes),
                                .total = weights.sum(),
                                .scale = *a.inputs[0].as<const T>() / *a.inputs[4].as<const T>()};
  const T* logits = a.inputs[1].as<const T>();
  const T* log_sums = a.inputs[3].as<const T>();
  T* dlogits = a.outputs[0].as<T>();
  const auto row = [&](std::int64_t r) {
    const std::int64_t label = labels[r];
    const std::int64_t at = layout.offset(r);
    const LabelKind kind = labels.kind(label);
    if (kind == LabelKind::kIgnored) return fill_row(dlogits + at, layout, T{0});
    if (kind == LabelKind::kOutside) return fill_row(dlogits + at, layout, static_cast<T>(kNaN));
    gradient(logits + at, dlogits + at, log_sums[r], label);
  };
  parallel_for(a.threads, layout.rows(), row_grain(layout.classes),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) row(r);
               });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("WeightedCrossEntropy", kDTypeOf<T>,
            {.name = "weighted_cross_entropy.reference",
             .prepare = prepare,
             .run = weighted_cross_entropy<T>});
  table.add(
      "WeightedCrossEntropyGrad", kDTypeOf<T>,
      {.name = "weighted_cross_entropy_grad.reference", .run = weighted_cross_entropy_grad<T>});
}

}  // namespace

void add_weighted_loss(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
