// Models, sizes and data as `train` takes them, without a run.
#include "cli/advise/advised_step.h"

#include <utility>

#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/flags/training_flags.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

// Small enough that no loss leaves the numbers while a batch is trained on again and again.
constexpr double kLearningRate = 1e-5;

}  // namespace

AdvisedStep advised_step(const Source& source, const Invocation& settled) {
  const Settings& settings = settled.settings();
  OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes_with_data(model, size_request(settings), settings.text("data"));
  require_examples(model, sizes);
  CompileOptions options = compile_options(settled, model, sizes);
  resolve_most_labels(settings.text("data"), options.training.loss);
  return {.model = std::move(model), .options = std::move(options), .sizes = sizes};
}

Batch batch_of(const AdvisedStep& step, const Compiled& compiled, const Invocation& settled) {
  DatasetOptions wanted =
      dataset_options(compiled, step.model, step.options.training.loss, step.sizes);
  wanted.seed = settled.seed();
  const std::shared_ptr<const Dataset> data =
      open_data(data_request(settled.settings()), std::move(wanted));
  const BatchOrder order =
      BatchOrder::training(data->examples(Split::kTrain), step.sizes.batch, settled.seed());
  return *DirectBatches(data, order, {.first = 0, .count = 1}).next();
}

TimedSteps timed_steps(const AdvisedStep& step, const Invocation& settled) {
  return TimedSteps(
      step.model, step.options,
      [&](const Compiled& compiled) { return batch_of(step, compiled, settled); }, kLearningRate);
}

}  // namespace trainscope
