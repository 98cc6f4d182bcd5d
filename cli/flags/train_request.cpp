// From settings to a request.
#include "cli/flags/train_request.h"

#include <chrono>
#include <utility>

#include "cli/flags/data_fields.h"
#include "cli/flags/duration.h"
#include "cli/flags/run_options.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "datasets/prefetch.h"

namespace trainscope {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<Clock::time_point> deadline(const Settings& settings, Clock::time_point start) {
  if (!settings.has("time-limit")) return std::nullopt;
  const auto limit = parse_duration("time-limit", settings.text("time-limit"));
  return start + std::chrono::duration_cast<Clock::duration>(limit);
}

// Data for what the program reads, opened once there is one.
struct DataSource {
  OnnxModel model;
  LossOptions loss;
  Sizes sizes;
  std::string spec;
  std::uint64_t seed = 0;

  std::shared_ptr<const Dataset> operator()(const Compiled& compiled) const {
    DatasetOptions wanted = dataset_options(compiled, model, loss, sizes);
    wanted.seed = seed;
    return open_dataset(spec, wanted);
  }
};

std::unique_ptr<BatchSource> batches_ahead(std::shared_ptr<const Dataset> data,
                                           const BatchOrder& order, const BatchRange& range) {
  return std::make_unique<Prefetcher>(std::move(data), order, range);
}

RunNotes notes_of(const Invocation& invocation, const LossOptions& loss, const Sizes& sizes) {
  RunNotes notes{.options = resolved_options(invocation, loss, sizes),
                 .command = {"trainscope"},
                 .program_version = std::string(program_version())};
  notes.config = config_toml(notes.options);
  const std::vector<std::string>& words = invocation.words();
  notes.command.insert(notes.command.end(), words.begin(), words.end());
  return notes;
}

}  // namespace

TrainRequest train_request(const Invocation& invocation) {
  const Clock::time_point start = Clock::now();
  const Settings& settings = invocation.settings();
  OnnxModel model = OnnxModel::read(invocation.argument(0));
  const MetricsForms metrics = metrics_forms(settings);
  const std::int64_t steps = settings.integer("steps");
  const std::optional<Clock::time_point> end = deadline(settings, start);
  const std::string& data = settings.text("data");
  const Sizes sizes = resolve_sizes_with_data(model, size_request(settings), data);
  require_examples(model, sizes);
  CompileOptions compile = compile_options(invocation, model, sizes);
  const LossOptions loss = compile.training.loss;
  return {.model = model,
          .compile = std::move(compile),
          .open_data = DataSource{.model = model,
                                  .loss = loss,
                                  .sizes = sizes,
                                  .spec = data,
                                  .seed = invocation.seed()},
          .open_batches = batches_ahead,
          .batch = sizes.batch,
          .steps = steps,
          .schedule = training_schedule(settings, steps),
          .seed = invocation.seed(),
          .run_folder = settings.text_or_empty("run-dir"),
          .resume = settings.text_or_empty("resume"),
          .save_every = settings.integer("save-every"),
          .keep = static_cast<int>(settings.integer("keep")),
          .evaluate_every = settings.integer("eval-every"),
          .keep_best = settings.on("keep-best"),
          .metrics = metrics,
          .export_file = settings.text_or_empty("export"),
          .deadline = end,
          .notes = notes_of(invocation, loss, sizes)};
}

}  // namespace trainscope
