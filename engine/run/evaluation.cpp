// Evaluation of the validation split, with its last incomplete batch.
#include "engine/run/evaluation.h"

#include <fmt/format.h>

#include <functional>

namespace trainscope {
namespace {

// Means weighted by examples: for data whose examples have equally many labels each.
void merge(Evaluation& into, const Evaluation& more) {
  const auto a = static_cast<double>(into.examples);
  const auto b = static_cast<double>(more.examples);
  into.loss = (into.loss * a + more.loss * b) / (a + b);
  into.examples += more.examples;
  into.tokens += more.tokens;
  into.counted.labels += more.counted.labels;
  into.counted.correct += more.counted.correct;
}

// Of the first term over classes.
std::optional<ScoredClasses> scored_classes(const LossOptions& loss) {
  for (const LossOptions* term : terms_of_loss(loss)) {
    if (!is_by_class(term->kind)) continue;
    return ScoredClasses{.output = term->output,
                         .labels = term->labels,
                         .class_axis = term->class_axis,
                         .ignore_index = term->ignore_index};
  }
  return std::nullopt;
}

// Batches until somebody wants to stop.
class WatchedBatches final : public BatchSource {
 public:
  WatchedBatches(const ValidationData& validation, const BatchOrder& order, BatchRange range)
      : watch_(validation.watch),
        batches_(validation.data, order, range),
        done_(range.first),
        total_(order.batches_per_epoch()) {}

  const Batch* next() override {
    if (watch_.progress) watch_.progress({.work = "evaluation", .done = done_, .total = total_});
    ++done_;
    return watch_.stop.stop_requested() ? nullptr : batches_.next();
  }

 private:
  Watch watch_;
  DirectBatches batches_;
  std::int64_t done_;
  std::int64_t total_;
};

// A sum of losses has terms that are means over different things, and the mean of CTC is over
// examples, whatever its labels.
BatchWeight batch_weight(const LossOptions& loss) {
  const bool by_labels = loss.further.empty() && loss.kind != LossKind::kCtc;
  return by_labels ? BatchWeight::kLossTerms : BatchWeight::kExamples;
}

Evaluation evaluate_range(Executor& executor, const ValidationData& validation,
                          const BatchOrder& order, const BatchRange& range) {
  WatchedBatches batches(validation, order, range);
  return evaluate(executor, batches, scored_classes(validation.loss),
                  batch_weight(validation.loss));
}

// Whether examples that stand for none leave the loss as it is: only a loss over labels that can be
// ignored, and no other term beside it.
bool can_pad(const ValidationData& validation) {
  return validation.data->can_pad() && validation.loss.further.empty() &&
         validation.loss.kind != LossKind::kCtc;
}

// Gives the program of a batch size; null when the model does not take that size.
using ProgramForBatch = std::function<Executor*(std::int64_t batch)>;

std::optional<Evaluation> evaluate_batches(const ValidationData& validation,
                                           const ProgramForBatch& program) {
  const Dataset& data = *validation.data;
  const std::int64_t batch = validation.batch;
  const std::int64_t examples = data.examples(Split::kValidation);
  if (examples == 0) return std::nullopt;
  const bool pads = can_pad(validation);
  const LastBatch last = pads ? LastBatch::kPad : LastBatch::kShort;
  const BatchOrder order = BatchOrder::validation(examples, batch, last);
  const std::int64_t whole = examples / batch;
  const std::int64_t rest = examples % batch;
  const std::int64_t padded = rest > 0 && pads ? 1 : 0;

  std::optional<Evaluation> result;
  if (whole + padded > 0) {
    result =
        evaluate_range(*program(batch), validation, order, {.first = 0, .count = whole + padded});
  }
  if (validation.watch.stop.stop_requested()) return std::nullopt;
  if (rest == 0 || padded == 1) return result;
  Executor* executor = program(rest);
  if (executor == nullptr) return result;
  const Evaluation remainder =
      evaluate_range(*executor, validation, order, {.first = whole, .count = 1});
  if (validation.watch.stop.stop_requested()) return std::nullopt;
  if (!result) return remainder;
  merge(*result, remainder);
  return result;
}

}  // namespace

std::optional<Evaluation> evaluate_validation(ForwardPrograms& programs,
                                              const ValidationData& validation) {
  return evaluate_batches(validation, [&](std::int64_t size) -> Executor* {
    if (size == validation.batch) return &programs.executor(GraphMode::kEvaluate);
    return programs.executor(GraphMode::kEvaluate, size);
  });
}

std::optional<Evaluation> evaluate_validation(Session& session, const ImportOptions& import,
                                              const ValidationData& validation) {
  return evaluate_batches(validation, [&](std::int64_t size) -> Executor* {
    if (size == validation.batch) return &session.executor(GraphMode::kEvaluate, import);
    const std::optional<ImportOptions> other =
        with_batch(session.model(), import, size, validation.batch_axes);
    return other ? &session.executor(GraphMode::kEvaluate, *other) : nullptr;
  });
}

std::int64_t examples_left_out(const ValidationData& validation, const OnnxModel& model) {
  const std::int64_t rest = validation.data->examples(Split::kValidation) % validation.batch;
  const bool any_size = with_batch(model, {}, validation.batch, validation.batch_axes).has_value();
  return rest == 0 || any_size || can_pad(validation) ? 0 : rest;
}

std::string left_out_text(const ValidationData& validation, const OnnxModel& model) {
  const std::int64_t count = examples_left_out(validation, model);
  if (count == 0) return {};
  return fmt::format(
      "{} of {} examples that validate do not fill a batch of {}, which the model fixes, and are "
      "left out: export it with an open first dimension, or give a whole number of batches",
      count, validation.data->examples(Split::kValidation), validation.batch);
}

std::optional<ImportOptions> with_batch(const OnnxModel& model, const ImportOptions& import,
                                        std::int64_t batch, const BatchAxes& axes) {
  ImportOptions changed = import;
  for (const ModelTensor& input : model.inputs()) {
    const auto named = axes.find(input.name);
    const std::size_t axis = named == axes.end() ? 0 : static_cast<std::size_t>(named->second);
    const auto shape = changed.shapes.find(input.name);
    if (shape != changed.shapes.end() && axis < shape->second.size()) shape->second[axis] = batch;
    if (!input.dims || axis >= input.dims->size()) continue;
    const ModelDim& dim = (*input.dims)[axis];
    if (dim.size) return std::nullopt;
    if (!dim.symbol.empty()) changed.dims.insert_or_assign(dim.symbol, batch);
  }
  return changed;
}

}  // namespace trainscope
