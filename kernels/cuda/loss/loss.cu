// Losses over class scores, CrossEntropy and NegativeLogLikelihood, with their gradients.
#include <cmath>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/loss/class_scores.h"
#include "kernels/cuda/loss/loss.h"

namespace trainscope::cuda {
namespace {

// --- CrossEntropy(logits, labels [, divisor]) -> loss [, log_sum_exp [, count]] ------------------

// Bytes: logits read once, the label of its row by each thread and its score once more; two numbers
// (16) a row written, and the logarithm.
template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    cross_entropy_rows(const T* logits, const ScoreLayout layout, const Labels labels,
                       Computed<T>* log_sums, RowLoss* rows) {
  for (std::int64_t row = Team::first(); row < layout.rows(); row += Team::teams()) {
    const std::int64_t label = labels[row];
    const LabelKind kind = labels.kind(label);
    const T* x = logits + layout.offset(row);
    const double log_sum = kind == LabelKind::kIgnored ? 0.0 : log_sum_exp<Team>(x, layout);
    if (Team::rank() != 0) continue;
    if (log_sums != nullptr) log_sums[row] = static_cast<Computed<T>>(log_sum);
    RowLoss loss{0.0, kind == LabelKind::kIgnored ? 0.0 : 1.0};
    if (kind == LabelKind::kOutside) loss.loss = not_a_number();
    if (kind == LabelKind::kCounted) {
      loss.loss = log_sum - static_cast<double>(x[label * layout.inner]);
    }
    rows[row] = loss;
  }
}

template <typename T>
void cross_entropy(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.inputs[0].shape(), params.class_axis);
  auto* rows = static_cast<RowLoss*>(args.workspace);
  with_score_team(layout, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, cross_entropy_rows<Team, T>, args.inputs[0].as<const T>(), layout,
           labels_of(args.inputs[1], layout.classes, params), data_or_null<C>(args.outputs, 1),
           rows);
  });
  launch_finish_loss<C>(args.call, rows, layout.rows(),
                        {.divisor = data_or_null<const C>(args.inputs, 2),
                         .loss = data_or_null<C>(args.outputs, 0),
                         .weight = data_or_null<C>(args.outputs, 2)});
}

// --- CrossEntropyGrad(dloss, logits, labels, log_sum_exp, count) -> dlogits ----------------------

// (softmax - one_hot) * dloss / count. Near probability 1 the label's own element would lose its
// digits in the difference, hence expm1. dlogits may be logits: each element is read and written by
// one thread. Bytes: logits read and dlogits written once; each thread reads its row's label and
// logarithm, and the scale's two numbers once. FLOPs: 3 an element, exp one of them.
template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    cross_entropy_grad_rows(const Computed<T>* dloss, const Computed<T>* count, const T* logits,
                            const ScoreLayout layout, const Labels labels,
                            const Computed<T>* log_sums, T* dlogits) {
  using C = Computed<T>;
  const C scale = *dloss / *count;
  for (std::int64_t row = Team::first(); row < layout.rows(); row += Team::teams()) {
    const std::int64_t label = labels[row];
    const LabelKind kind = labels.kind(label);
    const std::int64_t at = layout.offset(row);
    const C log_sum = log_sums[row];
    const C filled = kind == LabelKind::kOutside ? static_cast<C>(not_a_number()) : C{0};
    for (std::int64_t c = Team::rank(); c < layout.classes; c += Team::size()) {
      const std::int64_t i = at + c * layout.inner;
      C value = filled;
      if (kind == LabelKind::kCounted) {
        const C exponent = static_cast<C>(logits[i]) - log_sum;
        value = (c == label ? std::expm1(exponent) : std::exp(exponent)) * scale;
      }
      dlogits[i] = static_cast<T>(value);
    }
  }
}

template <typename T>
void cross_entropy_grad(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.inputs[1].shape(), params.class_axis);
  with_score_team(layout, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, cross_entropy_grad_rows<Team, T>, args.inputs[0].as<const C>(),
           args.inputs[4].as<const C>(), args.inputs[1].as<const T>(), layout,
           labels_of(args.inputs[2], layout.classes, params), args.inputs[3].as<const C>(),
           args.outputs[0].as<T>());
  });
}

// --- NegativeLogLikelihood(log_probs, labels [, divisor]) -> loss [, count] ----------------------

template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    likelihood_rows(const T* log_probs, const ScoreLayout layout, const Labels labels,
                    RowLoss* rows) {
  for (std::int64_t row = ThreadTeam::first(); row < layout.rows(); row += ThreadTeam::teams()) {
    const std::int64_t label = labels[row];
    const LabelKind kind = labels.kind(label);
    RowLoss loss{0.0, kind == LabelKind::kIgnored ? 0.0 : 1.0};
    if (kind == LabelKind::kOutside) loss.loss = not_a_number();
    if (kind == LabelKind::kCounted) {
      loss.loss = -static_cast<double>(log_probs[layout.offset(row) + label * layout.inner]);
    }
    rows[row] = loss;
  }
}

template <typename T>
void negative_log_likelihood(const RunArgs& args) {
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.inputs[0].shape(), params.class_axis);
  auto* rows = static_cast<RowLoss*>(args.workspace);
  launch(args.call,
         {.blocks = team_blocks(layout.rows(), kTeamThreads), .threads = dim3(kTeamThreads)},
         likelihood_rows<T>, args.inputs[0].as<const T>(), layout,
         labels_of(args.inputs[1], layout.classes, params), rows);
  launch_finish_loss<T>(args.call, rows, layout.rows(),
                        {.divisor = data_or_null<const T>(args.inputs, 2),
                         .loss = data_or_null<T>(args.outputs, 0),
                         .weight = data_or_null<T>(args.outputs, 1)});
}

// --- NegativeLogLikelihoodGrad(dloss, labels, count) -> dlog_probs, zero but at the labels -------

template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    likelihood_grad_rows(const T* dloss, const T* count, const ScoreLayout layout,
                         const Labels labels, T* dlog_probs) {
  const T scale = *dloss / *count;
  for (std::int64_t row = Team::first(); row < layout.rows(); row += Team::teams()) {
    const std::int64_t label = labels[row];
    const LabelKind kind = labels.kind(label);
    const T filled = kind == LabelKind::kOutside ? static_cast<T>(not_a_number()) : T{0};
    T* dx = dlog_probs + layout.offset(row);
    for (std::int64_t c = Team::rank(); c < layout.classes; c += Team::size()) {
      dx[c * layout.inner] = kind == LabelKind::kCounted && c == label ? -scale : filled;
    }
  }
}

template <typename T>
void negative_log_likelihood_grad(const RunArgs& args) {
  const auto& params = std::get<LossParams>(args.params);
  const ScoreLayout layout = score_layout(args.outputs[0].shape(), params.class_axis);
  with_score_team(layout, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, likelihood_grad_rows<Team, T>, args.inputs[0].as<const T>(),
           args.inputs[2].as<const T>(), layout, labels_of(args.inputs[1], layout.classes, params),
           args.outputs[0].as<T>());
  });
}

template <typename T>
void add_cross_entropy(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("CrossEntropy", dtype,
            {.name = "cross_entropy.cuda", .prepare = prepare_row_losses, .run = cross_entropy<T>});
  table.add("CrossEntropyGrad", dtype,
            {.name = "cross_entropy_grad.cuda", .run = cross_entropy_grad<T>});
}

template <typename T>
void add_likelihood(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("NegativeLogLikelihood", dtype,
            {.name = "negative_log_likelihood.cuda",
             .prepare = prepare_row_losses,
             .run = negative_log_likelihood<T>});
  table.add("NegativeLogLikelihoodGrad", dtype,
            {.name = "negative_log_likelihood_grad.cuda", .run = negative_log_likelihood_grad<T>});
}

}  // namespace

void add_loss(KernelTable& table) {
  add_cross_entropy<float>(table);
  add_cross_entropy<BFloat16>(table);
  add_cross_entropy<Float16>(table);
  add_likelihood<float>(table);
  add_element_losses(table);
}

}  // namespace trainscope::cuda
