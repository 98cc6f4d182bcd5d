// From settings to a request.
#include "cli/flags/train_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cuda_driver.h"
#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/data/longest_trips.h"
#include "cli/flags/duration.h"
#include "cli/flags/ranks_flag.h"
#include "cli/flags/run_options.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "datasets/prefetch.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/this_machine.h"
#include "engine/model_warnings.h"
#include "engine/ranks/shared_memory_ranks.h"

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
  DataRequest request;
  std::uint64_t seed = 0;

  std::shared_ptr<const Dataset> operator()(const Compiled& compiled) const {
    DatasetOptions wanted = dataset_options(compiled, model, loss, sizes);
    wanted.seed = seed;
    return open_data(request, std::move(wanted));
  }
};

// How long to train: steps or epochs, the other one 0. What is said nearer to this call counts:
// --epochs over the steps of a file or a run.
struct Length {
  std::int64_t steps = 0;
  std::int64_t epochs = 0;
};

Length run_length(const Settings& settings) {
  const bool has_steps = settings.has("steps");
  const bool has_epochs = settings.has("epochs");
  if (has_steps && has_epochs) {
    const Origin steps = settings.all().find("steps")->second.origin;
    const Origin epochs = settings.all().find("epochs")->second.origin;
    require(steps != epochs, ErrorCode::kUsage, "--steps and --epochs: give one");
    if (steps > epochs) return {.steps = settings.integer("steps")};
    return {.epochs = settings.integer("epochs")};
  }
  if (has_epochs) return {.epochs = settings.integer("epochs")};
  return {.steps = settings.integer("steps")};
}

// "PATIENCE[,min_delta=X]".
std::optional<EarlyStop> early_stop(const Settings& settings) {
  if (!settings.has("early-stop")) return std::nullopt;
  const std::string& text = settings.text("early-stop");
  const std::vector<std::string_view> pieces = split(text, ',');
  static constexpr std::string_view kKey = "min_delta=";
  const std::optional<std::int64_t> patience = parse_int(pieces[0]);
  std::optional<double> gain = 0.0;
  if (pieces.size() > 1) {
    gain = pieces[1].starts_with(kKey) ? parse_number(pieces[1].substr(kKey.size())) : std::nullopt;
  }
  require(patience && *patience >= 1 && gain && *gain >= 0.0 && pieces.size() <= 2,
          ErrorCode::kUsage,
          "--early-stop is '{}': expected a number of evaluations, PATIENCE or "
          "PATIENCE,min_delta=X",
          printable(text));
  if (settings.integer("eval-every") == 0) {
    throw Error(ErrorCode::kUsage, "--early-stop needs evaluations while the run trains")
        .hint("--eval-every N: steps between them");
  }
  return EarlyStop{.patience = *patience, .least_gain = *gain};
}

// "KEY=NUMBER"; 0: it is not that.
std::int64_t keyed_count(std::string_view text, std::string_view key) {
  if (!text.starts_with(key)) return 0;
  return std::max<std::int64_t>(0, parse_int(text.substr(key.size())).value_or(0));
}

// "steps=FROM:TO[,every=N[,repeat=K]]", with a plus before FROM counted from where the session
// begins.
std::optional<ProfileSteps> profile_steps(const Settings& settings) {
  if (!settings.has("profile")) return std::nullopt;
  const std::string& text = settings.text("profile");
  static constexpr std::string_view kKey = "steps=";
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 48;  // no sum of two overflows
  const std::vector<std::string_view> pieces = split(text, ',');
  std::string_view range = pieces[0];
  ProfileSteps steps;
  bool is_known = range.starts_with(kKey) && pieces.size() <= 3;
  if (is_known) {
    range.remove_prefix(kKey.size());
    steps.of_session = range.starts_with('+');
    if (steps.of_session) range.remove_prefix(1);
    const std::size_t colon = std::min(range.find(':'), range.size());
    steps.from = parse_int(range.substr(0, colon)).value_or(0);
    steps.to = parse_int(range.substr(std::min(colon + 1, range.size()))).value_or(0);
    is_known = steps.from >= 1 && steps.from <= steps.to;
  }
  if (is_known && pieces.size() > 1) {
    steps.every = keyed_count(pieces[1], "every=");
    is_known = steps.every > steps.to - steps.from;
  }
  if (is_known && pieces.size() > 2) {
    steps.repeat = keyed_count(pieces[2], "repeat=");
    is_known = steps.repeat >= 1 && steps.repeat <= kMostSteps / steps.every;
  }
  if (is_known && steps.to <= kMostSteps) return steps;
  throw Error(ErrorCode::kUsage,
              fmt::format("--profile is '{}': expected steps=FROM:TO, two steps from 1 on, or "
                          "steps=FROM:TO,every=N[,repeat=K] with N of TO - FROM + 1 at least",
                          printable(text)))
      .hint(
          "--profile steps=6:25 leaves out five steps that warm up, and profiles twenty; with "
          ",every=100 again steps 106:125, 206:225 and so on");
}

// "1,5,100".
std::vector<std::int64_t> listed_steps(const std::string& text) {
  std::vector<std::int64_t> steps;
  for (const std::string_view word : split(text, ',')) {
    const std::optional<std::int64_t> step = parse_int(word);
    require(step && *step >= 1, ErrorCode::kUsage,
            "--record-steps is '{}': expected steps from 1 on, with commas between",
            printable(text));
    steps.push_back(*step);
  }
  return steps;
}

// "/h.0/*,logits".
std::vector<std::string> listed_names(std::string_view flag, const std::string& text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) {
    require(!name.empty(), ErrorCode::kUsage,
            "--{} is '{}': expected names or patterns, with commas between", flag, printable(text));
    names.emplace_back(name);
  }
  return names;
}

std::optional<NumericsRequest> numerics_request(const Settings& settings) {
  const bool wanted = settings.on("record-numerics");
  for (const std::string_view flag : {"record-steps", "record-values", "record-full"}) {
    require(wanted || !settings.given(flag), ErrorCode::kUsage,
            "--{} says what --record-numerics records, which is not given", flag);
  }
  if (!wanted) return std::nullopt;
  const std::string& values = settings.text("record-values");
  NumericsRequest request{.all_values = values != "fused"};
  if (request.all_values && values != "all") request.values = listed_names("record-values", values);
  if (settings.has("record-steps")) request.steps = listed_steps(settings.text("record-steps"));
  if (settings.has("record-full")) {
    request.full = listed_names("record-full", settings.text("record-full"));
  }
  return request;
}

// For steps that use so many threads.
OpenBatches batches_ahead(int threads) {
  const SpareCore spare = threads < usable_cores() ? SpareCore::kYes : SpareCore::kNo;
  return [spare](std::shared_ptr<const Dataset> data, const BatchOrder& order,
                 const BatchRange& range) -> std::unique_ptr<BatchSource> {
    return std::make_unique<Prefetcher>(std::move(data), order, range, kBatchesAhead, spare);
  };
}

// Null where this process is no rank of several.
std::shared_ptr<Communicator> ranks_of(const Settings& settings) {
  const std::optional<RankPlace> place = rank_place(settings);
  if (!place || place->ranks == 1) return nullptr;
  return std::make_shared<SharedMemoryRanks>(place->descriptor, place->rank, place->ranks);
}

RunNotes notes_of(const Invocation& invocation, const CompileOptions& compile, const Sizes& sizes) {
  RunNotes notes{.options = resolved_options(invocation, compile, sizes),
                 .command = {"trainscope"},
                 .program_version = std::string(program_version())};
  const std::string& device = invocation.settings().text("device");
  if (device.starts_with("cuda")) {
    notes.device_name = device_name_of(device, find_cuda_driver());
  }
  notes.config = config_toml(notes.options);
  const std::optional<RankPlace> place = rank_place(invocation.settings());
  if (place && place->ranks > 1) notes.options.set(std::string(kRanksOption), place->ranks);
  const std::vector<std::string>& words = invocation.words();
  notes.command.insert(notes.command.end(), words.begin(), words.end());
  return notes;
}

}  // namespace

TrainRequest step_request(OnnxModel model, const Sizes& sizes, const Invocation& invocation) {
  DataRequest data = data_request(invocation.settings());
  require_examples(model, sizes);
  CompileOptions compile = compile_options(invocation, model, sizes);
  resolve_most_labels(data.source, compile.training.loss);
  resolve_max_trips(model, data.source, sizes, compile.import);
  const LossOptions loss = compile.training.loss;
  return {.model = model,
          .compile = std::move(compile),
          .open_data = DataSource{.model = std::move(model),
                                  .loss = loss,
                                  .sizes = sizes,
                                  .request = std::move(data),
                                  .seed = invocation.seed()},
          .batch = sizes.batch,
          .batch_axes = sizes.batch_axes,
          .seed = invocation.seed()};
}

TrainRequest train_request(const Invocation& invocation) {
  const Clock::time_point start = Clock::now();
  const Settings& settings = invocation.settings();
  const OnnxModel model = OnnxModel::read(invocation.argument(0));
  warn_of(model, invocation.log());
  const MetricsForms metrics = metrics_forms(settings);
  const Length length = run_length(settings);
  const std::optional<Clock::time_point> end = deadline(settings, start);
  const Sizes sizes =
      resolve_sizes_with_data(model, size_request(settings), data_request(settings).source);
  TrainRequest request = step_request(model, sizes, invocation);
  for (const ParameterFault& note : choose_parameters(model, request.compile.import).notes) {
    invocation.log().warning("{}", note.text());
  }
  request.ranks = ranks_of(settings);
  request.connect = device_channel;
  // Each rank has a GPU of its own, that of its number.
  if (request.ranks && settings.text("device") == "cuda") {
    request.compile.device = device_of(fmt::format("cuda:{}", request.ranks->rank()));
  }
  request.open_batches = batches_ahead(request.compile.lower.threads);
  request.steps = length.steps;
  request.epochs = length.epochs;
  request.shuffle = settings.text("shuffle") == "none" ? Shuffle::kNone : Shuffle::kEachEpoch;
  request.schedule = training_schedule(settings, length.steps);
  request.run_folder = settings.text_or_empty("run-dir");
  request.resume = settings.text_or_empty("resume");
  request.save_every = settings.integer("save-every");
  request.keep = static_cast<int>(settings.integer("keep"));
  request.evaluate_every = settings.integer("eval-every");
  request.keep_best = settings.on("keep-best");
  request.early_stop = early_stop(settings);
  request.metrics = metrics;
  request.export_file = settings.text_or_empty("export");
  request.deadline = end;
  request.session_steps = settings.find_integer("session-steps");
  request.profile = profile_steps(settings);
  if (request.profile) {
    request.profile->level = static_cast<TraceLevel>(settings.integer("trace-level"));
  }
  request.numerics = numerics_request(settings);
  request.notes = notes_of(invocation, request.compile, sizes);
  return request;
}

}  // namespace trainscope
