// Losses over class scores, CrossEntropy and NegativeLogLikelihood, with their gradients.
#include "kernels/cpu/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/api/kernel.h"
#include "kernels/cpu/loss/class_scores.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What the rows of one block add to the loss.
struct Partial {
  double loss = 0.0;
  double count = 0.0;
};

Prepared prepare_partials(const PrepareArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const std::int64_t rows = score_layout(a.inputs[0].shape(), params.class_axis).rows();
  return {.workspace_bytes = static_cast<std::size_t>(score_blocks(rows)) * sizeof(Partial),
          .state = nullptr};
}

bool has_output(const RunArgs& a, std::size_t output) {
  return output < a.outputs.size() && a.outputs[output].present;
}

bool has_input(const RunArgs& a, std::size_t input) {
  return input < a.inputs.size() && a.inputs[input].present;
}

// Output 0: the mean over the counted labels, from one partial sum per block, added in their order
// so that it does not depend on the number of threads; 0/0 without counted labels. Input 2, if
// given, is what the sum is divided by instead. Output `count_output`, if wanted: how many are
// counted.
template <typename C>
void write_mean(const RunArgs& a, std::span<const Partial> partials, std::size_t count_output) {
  Partial sum;
  for (const Partial& partial : partials) {
    sum.loss += partial.loss;
    sum.count += partial.count;
  }
  const double divisor =
      has_input(a, 2) ? static_cast<double>(*a.inputs[2].as<const C>()) : sum.count;
  if (a.outputs[0].present) *a.outputs[0].as<C>() = static_cast<C>(sum.loss / divisor);
  if (has_output(a, count_output)) *a.outputs[count_output].as<C>() = static_cast<C>(sum.count);
}

// logits [outer, classes, inner], labels [outer, inner], divisor [] -> loss [], log_sum_exp
// [outer, inner], count []. Logits are T, all else is what T is computed with.
template <typename T>
void cross_entropy(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.inputs[0].shape(), params.class_axis);
  const Labels labels{a.inputs[1], layout.classes, params.ignore_index};
  const T* logits = a.inputs[0].as<const T>();
  using C = Computed<T>;
  C* kept = has_output(a, 1) ? a.outputs[1].as<C>() : nullptr;
  auto* partials = static_cast<Partial*>(a.workspace);
  const std::int64_t rows = layout.rows();
  const std::int64_t blocks = score_blocks(rows);

  parallel_for(a.threads, blocks, row_grain(kScoreRows * layout.classes),
               [&](std::int64_t first_block, std::int64_t last_block) {
                 for (std::int64_t b = first_block; b < last_block; ++b) {
                   const std::int64_t begin = b * kScoreRows;
                   const std::int64_t end = std::min(rows, begin + kScoreRows);
                   double row_log_sum[kScoreRows];
                   block_log_sum_exp(logits, layout, labels, begin, end, row_log_sum);
                   Partial partial;
                   for (std::int64_t r = begin; r < end; ++r) {
                     const std::int64_t label = labels[r];
                     const LabelKind kind = labels.kind(label);
                     if (kept != nullptr) kept[r] = static_cast<C>(row_log_sum[r - begin]);
                     if (kind == LabelKind::kIgnored) continue;
                     partial.count += 1.0;
                     partial.loss += kind == LabelKind::kOutside
                                         ? kNaN
                                         : row_log_sum[r - begin] -
                                               static_cast<double>(
                                                   logits[layout.offset(r) + label * layout.inner]);
                   }
                   partials[b] = partial;
                 }
               });
  write_mean<C>(a, {partials, static_cast<std::size_t>(blocks)}, 2);
}

// One row of (softmax - one_hot) * scale. Near probability 1 the label's own element would lose its
// digits in the difference, hence expm1. dx may be x.
template <typename T>
void cross_entropy_row(const T* x, T* dx, const ScoreLayout& layout, Computed<T> log_sum,
                       std::int64_t label, Computed<T> scale) {
  const std::int64_t at_label = label * layout.inner;
  const auto label_element = static_cast<T>(std::expm1(computed(x[at_label]) - log_sum) * scale);
  if (layout.inner == 1) {
#pragma omp simd
    for (std::int64_t c = 0; c < layout.classes; ++c) {
      store(dx[c], vector_exp(computed(x[c]) - log_sum) * scale);
    }
  } else {
    for (std::int64_t c = 0; c < layout.classes; ++c) {
      const Computed<T> score = x[c * layout.inner];
      dx[c * layout.inner] = static_cast<T>(vector_exp(score - log_sum) * scale);
    }
  }
  dx[at_label] = label_element;
}

// dloss [], logits, labels, log_sum_exp, count [] -> dlogits, which may be logits.
template <typename T>
void cross_entropy_grad(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.inputs[1].shape(), params.class_axis);
  const Labels labels{a.inputs[2], layout.classes, params.ignore_index};
  const T* logits = a.inputs[1].as<const T>();
  using C = Computed<T>;
  const C* log_sums = a.inputs[3].as<const C>();
  T* dlogits = a.outputs[0].as<T>();
  const C scale = *a.inputs[0].as<const C>() / *a.inputs[4].as<const C>();

  parallel_for(a.threads, layout.rows(), row_grain(layout.classes),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const std::int64_t label = labels[r];
                   const std::int64_t offset = layout.offset(r);
                   switch (labels.kind(label)) {
                     case LabelKind::kIgnored:
                       fill_row(dlogits + offset, layout, T{0});
                       break;
                     case LabelKind::kOutside:
                       fill_row(dlogits + offset, layout, static_cast<T>(kNaN));
                       break;
                     case LabelKind::kCounted:
                       cross_entropy_row(logits + offset, dlogits + offset, layout, log_sums[r],
                                         label, scale);
                   }
                 }
               });
}

// log_probs [outer, classes, inner], labels [outer, inner] -> loss [], count [].
template <typename T>
void negative_log_likelihood(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.inputs[0].shape(), params.class_axis);
  const Labels labels{a.inputs[1], layout.classes, params.ignore_index};
  const T* log_probs = a.inputs[0].as<const T>();
  auto* partials = static_cast<Partial*>(a.workspace);
  const std::int64_t rows = layout.rows();
  const std::int64_t blocks = score_blocks(rows);

  parallel_for(a.threads, blocks, kElementGrain / kScoreRows,
               [&](std::int64_t first_block, std::int64_t last_block) {
                 for (std::int64_t b = first_block; b < last_block; ++b) {
                   Partial partial;
                   const std::int64_t end = std::min(rows, (b + 1) * kScoreRows);
                   for (std::int64_t r = b * kScoreRows; r < end; ++r) {
                     const std::int64_t label = labels[r];
                     const LabelKind kind = labels.kind(label);
                     if (kind == LabelKind::kIgnored) continue;
                     partial.count += 1.0;
                     partial.loss -= kind == LabelKind::kOutside
                                         ? kNaN
                                         : static_cast<double>(
                                               log_probs[layout.offset(r) + label * layout.inner]);
                   }
                   partials[b] = partial;
                 }
               });
  write_mean<T>(a, {partials, static_cast<std::size_t>(blocks)}, 1);
}

// dloss [], labels, count [] -> dlog_probs [outer, classes, inner], zero but at the labels.
template <typename T>
void negative_log_likelihood_grad(const RunArgs& a) {
  const auto& params = std::get<LossParams>(a.params);
  const ScoreLayout layout = score_layout(a.outputs[0].shape(), params.class_axis);
  const Labels labels{a.inputs[1], layout.classes, params.ignore_index};
  T* dlog_probs = a.outputs[0].as<T>();
  const T scale = *a.inputs[0].as<const T>() / *a.inputs[2].as<const T>();

  parallel_for(a.threads, layout.rows(), row_grain(layout.classes),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const std::int64_t label = labels[r];
                   const LabelKind kind = labels.kind(label);
                   T* row = dlog_probs + layout.offset(r);
                   fill_row(row, layout, kind == LabelKind::kOutside ? static_cast<T>(kNaN) : T{0});
                   if (kind == LabelKind::kCounted) row[label * layout.inner] = -scale;
                 }
               });
}

template <typename T>
void add_cross_entropy(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add(
      "CrossEntropy", dtype,
      {.name = "cross_entropy.reference", .prepare = prepare_partials, .run = cross_entropy<T>});
  table.add("CrossEntropyGrad", dtype,
            {.name = "cross_entropy_grad.reference", .run = cross_entropy_grad<T>});
}

template <typename T>
void add_class_losses(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  add_cross_entropy<T>(table);
  table.add("NegativeLogLikelihood", dtype,
            {.name = "negative_log_likelihood.reference",
             .prepare = prepare_partials,
             .run = negative_log_likelihood<T>});
  table.add(
      "NegativeLogLikelihoodGrad", dtype,
      {.name = "negative_log_likelihood_grad.reference", .run = negative_log_likelihood_grad<T>});
}

}  // namespace

void add_loss(KernelTable& table) {
  add_class_losses<float>(table);
  add_class_losses<double>(table);
  add_cross_entropy<BFloat16>(table);
  add_cross_entropy<Float16>(table);
  add_element_losses(table);
}

}  // namespace trainscope::cpu
