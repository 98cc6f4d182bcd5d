// A session from its request to its end; its steps are in training_steps.cpp.
#include "engine/run/training_run.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/byte_count.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/onnx/parameters.h"
#include "engine/run/numerics/numerics_recorder.h"
#include "engine/run/numerics/wanted_rows.h"
#include "engine/run/phase_teller.h"
#include "engine/run/rank_runs.h"
#include "engine/run/run_profiler.h"
#include "engine/run/run_settings.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr int kStopExitCode = 130;  // that of SIGINT: docs/exit-codes.md

void check_trains(const Compiled& compiled) {
  const Graph& graph = compiled.program.graph;
  if (graph.loss != kNoValue && !graph.updates.empty()) return;
  throw Error(ErrorCode::kUsage, "the compiled graph has no training step")
      .at(fmt::format("after pass {}", compiled.stages.back().name))
      .hint("leave out --stop-after, or the --disable of a pass that training needs");
}

// Whether `file` belongs right into the run's folder, which the session makes.
bool is_in_folder(const fs::path& file, const fs::path& folder) {
  if (folder.empty()) return false;
  const fs::path run = fs::absolute(folder / "").lexically_normal();
  return fs::absolute(file).lexically_normal().parent_path() == run.parent_path();
}

// Otherwise a long run would end with an error. Only making a file shows whether it can be made.
void check_export(const TrainRequest& request, RunAccess access) {
  if (request.export_file.empty()) return;
  if (is_in_folder(request.export_file, request.run_folder)) return;
  try {
    FolderEntry target = entry_of(request.export_file);
    if (access == RunAccess::kWrite) AtomicFile not_committed(std::move(target));
  } catch (Error& error) {
    error.at("--export");
    throw;
  }
}

// "classes: 0 setosa, 1 versicolor", where labels are text.
void log_class_names(const Json& data, Logger& log) {
  const Json* names = data.find(kClassNames);
  if (names == nullptr) return;
  std::string text;
  for (std::size_t i = 0; i < names->as_array().size(); ++i) {
    const std::string name = printable(names->as_array()[i].as_string(), 40);
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, name);
  }
  log.info("classes: {}", text);
}

// What a device cannot tell is no reason to lose a result: zeros.
DeviceMemory memory_of(Device& device) {
  DeviceMemory memory;
  return device.memory(&memory).done() ? memory : DeviceMemory();
}

profiler::TraceHeader trace_header(const TrainRequest& request, const Device& device) {
  Json more = Json::object({{"device", std::string(device.facts().name)},
                            {"threads", request.compile.lower.threads},
                            {"seed", fmt::format("{}", request.seed)},
                            {"options", request.notes.options}});
  if (&device == cpu_device().get()) more.set("isa", std::string(cpu_isa()));
  if (!request.notes.device_name.empty()) more.set("device_name", request.notes.device_name);
  return {.producer = "trainscope",
          .version = request.notes.program_version,
          .model = hash_hex(request.model.hash()),
          .mode = request.numerics->all_values ? "all" : "fused",
          .micro_batches = request.compile.training.micro_batches,
          .more = std::move(more)};
}

void log_stages(const Stages& stages, Logger& log) {
  for (const Stage& stage : stages) {
    log.debug("{}: {} nodes, {:.2f} ms{}", stage.label, stage.nodes, stage.milliseconds,
              stage.changed ? "" : ", unchanged");
  }
}

}  // namespace

TrainingRun::TrainingRun(TrainRequest request, std::shared_ptr<RunEvents> events,
                         std::stop_token stop)
    : request_(std::move(request)),
      listener_(std::move(events)),
      events_(std::make_shared<RunListeners>(std::vector{listener_})),
      watch_{.stop = std::move(stop),
             .progress = [this](const Progress& moment) { events_->progress(moment); }},
      log_(std::make_shared<Logger>(LogOptions{
          .stream = nullptr,
          .sink = [to = std::weak_ptr(events_)](LogLevel level, std::string_view message) {
            if (const std::shared_ptr<RunListeners> there = to.lock()) {
              there->log(level, message);
            }
          }})) {
  CHECK_INVARIANT(listener_ != nullptr && request_.open_data && request_.open_batches);
  check_export(request_, RunAccess::kLook);
  join_ranks();
  CompileOptions compile = request_.compile;
  compile.watch = watch_;
  session_.emplace(request_.model, std::move(compile));
  check_trains(session_->compiled());
  if (request_.numerics) check_values(*request_.numerics, session_->compiled().stages);
  for (const auto& each : request_.execution_events) {
    subscriptions_.push_back(session_->executor().listen(each));
  }
  if (listener_->wants_phases()) {
    subscriptions_.push_back(session_->executor().listen(
        std::make_shared<PhaseTeller>(session_->shared_executor()->shared_program(), listener_)));
  }
  data_ = request_.open_data(session_->compiled());
  order_ = BatchOrder::training(data_->examples(Split::kTrain), request_.batch, request_.seed,
                                request_.shuffle);
  settle_steps();
  trainer_.emplace(session_->shared_executor(), request_.compile.training.micro_batches,
                   request_.ranks);
  trainer_->set_unmarked(unmarked_parameters(request_.model, request_.compile.import));
}

// What depends on the number of examples.
void TrainingRun::settle_steps() {
  const ValidationData validation = validation_data();
  const std::int64_t validated =
      data_->examples(Split::kValidation) - examples_left_out(validation, session_->model());
  require(!request_.early_stop || validated > 0, ErrorCode::kUsage,
          "the run is to stop by its validation loss, but no examples validate{}",
          data_->examples(Split::kValidation) > 0
              ? ": " + left_out_text(validation, session_->model())
              : "");
  if (request_.epochs == 0) return;
  const std::int64_t batches = order_->batches_per_epoch();
  std::int64_t all = 0;
  require(!__builtin_mul_overflow(batches, request_.epochs, &all), ErrorCode::kUsage,
          "{} epochs of {} batches are too many", request_.epochs, batches);
  request_.steps = std::max<std::int64_t>(1, all / request_.compile.training.all_micro_batches());
  request_.schedule.total_steps = request_.steps;
  check_schedule(request_.schedule);
}

CheckpointState TrainingRun::state() const {
  // What is known at this step, the same for a resumed run as for one that was not interrupted.
  Json metrics = Json::object();
  if (last_) metrics.set("loss", last_->loss);
  if (best_) metrics.set("best", Json::object({{"step", best_->step}, {"loss", best_->loss}}));
  if (gain_) {
    metrics.set("gain", Json::object({{"step", gain_->step},
                                      {"loss", gain_->loss},
                                      {"evaluations_since", evaluations_without_gain_}}));
  }
  return {.step = step_,
          .samples_seen = samples_seen_,
          .seed = request_.seed,
          .settings = run_settings(request_, data_->description()),
          .metrics = std::move(metrics)};
}

void TrainingRun::restore(const ResumePoint& point) {
  if (!point.checkpoint) return;
  const Checkpoint& checkpoint = *point.checkpoint;
  check_settings(checkpoint, state(),
                 point.continues_run ? Continuation::kSameRun : Continuation::kNewRun, *log_);
  require(checkpoint.state.step <= request_.steps, ErrorCode::kUsage,
          "the checkpoint is at step {}, beyond --steps {}", checkpoint.state.step, request_.steps);
  trainer_->restore(checkpoint.file("model"), trainer_->model_tensors());
  trainer_->restore(checkpoint.file("optimizer"), trainer_->optimizer_tensors());
  from_step_ = step_ = checkpoint.state.step;
  samples_seen_ = checkpoint.state.samples_seen;
}

// Throws kUsage, naming them, for parameters and states that are not given, or with another number
// of elements.
void TrainingRun::begin_at(const GivenStart& start) {
  std::vector<std::string> missing;
  for (const auto& tensors : {trainer_->model_tensors(), trainer_->optimizer_tensors()}) {
    for (const NamedTensor& wanted : tensors) {
      const TensorType& type = wanted.tensor.type;
      const auto found = start.tensors.find(std::string(wanted.name));
      if (found == start.tensors.end() || found->second.elements() != type.elements()) {
        missing.push_back(printable(wanted.name));
        continue;
      }
      const Tensor elements = convert(found->second, type.dtype).reshaped(type.shape);
      session_->executor().write(wanted.name, elements);
    }
  }
  require(missing.empty(), ErrorCode::kUsage, "step {} cannot begin: elements are missing of {}",
          start.step + 1, join(missing, ", "));
  from_step_ = step_ = start.step;
  samples_seen_ = start.step * request_.compile.training.micro_batches * request_.batch;
}

// The best checkpoint as of the one that the run goes on from. A run in another folder, or one that
// was set back to before its best checkpoint was replaced, looks for a best one anew.
void TrainingRun::restore_best(const ResumePoint& point) {
  if (!point.continues_run || !point.checkpoint) return;
  const Json* gain = point.checkpoint->state.metrics.find("gain");
  if (gain != nullptr && request_.early_stop) {
    gain_ = {.step = gain->get<std::int64_t>("step"), .loss = gain->get<double>("loss")};
    evaluations_without_gain_ = gain->get<std::int64_t>("evaluations_since");
  }
  const Json* best = point.checkpoint->state.metrics.find("best");
  if (best == nullptr) return;
  const BestCheckpoint then{.step = best->get<std::int64_t>("step"),
                            .loss = best->get<double>("loss")};
  const Folder& root = records_->checkpoints_folder();
  if (!root.has(checkpoint_name(then.step))) return;
  best_ = then;
  note_best_checkpoint(root, then);
}

// Null where numbers are not recorded.
std::shared_ptr<NumericsRecorder> TrainingRun::numerics_recorder() {
  if (!request_.numerics) return nullptr;
  return std::make_shared<NumericsRecorder>(
      *request_.numerics,
      RecordedRun{.executor = session_->shared_executor(),
                  .model = session_->model(),
                  .compile = request_.compile,
                  .batch_axes = request_.batch_axes,
                  .header = trace_header(request_, *session_->compiled().program.device),
                  .folder = records_->numerics_folder(),
                  .log = log_});
}

// Of other ranks nothing is recorded; but they, too, do not end at the first signal.
void TrainingRun::begin() {
  if (leads()) return begin_recorded();
  opening_told_ = true;
  events_->session_opening();
}

void TrainingRun::begin_recorded() {
  check_export(request_, RunAccess::kWrite);
  ResumePoint point =
      find_resume_point(request_.resume, request_.run_folder, *log_, RunAccess::kWrite);
  restore(point);
  if (request_.start) begin_at(*request_.start);
  opening_told_ = true;
  events_->session_opening();
  records_ = RunRecords::open(point, request_, *data_);
  // It may refuse, and who listens hears of that.
  const std::shared_ptr<NumericsRecorder> numerics = numerics_recorder();
  *events_ = RunListeners();
  // First of all: a step of the profile does not end later because the step is written down.
  if (request_.profile) {
    events_->add(std::make_shared<RunProfiler>(
        *request_.profile, session_->shared_executor(), records_->events_file(), log_,
        profiler::best_tick_source(), request_.numerics.has_value()));
  }
  events_->add(records_);
  if (numerics) events_->add(numerics);
  events_->add(listener_);
  records_->also_write(request_.metrics);
  restore_best(point);
  if (point.continues_run && point.checkpoint) saved_step_ = step_;
  tell_begin();
  // A run that starts from another one's checkpoint can be resumed by itself from the begin on.
  if (point.checkpoint && !point.continues_run && request_.keeps_result) save();
  log_->open_file(records_->log_file());
  records_->write_compiled(request_.notes.config, session_->compiled(), watch_);
  if (stop_requested()) return;
  log_->info("{}: {} steps of {} x {} examples, {} parameter tensors, an arena of {}",
             printable(records_->folder().string()), last_step() - from_step_,
             request_.compile.training.all_micro_batches(), request_.batch,
             program().graph.values_of(ValueKind::kParameter).size(),
             bytes_text(program().arena().bytes));
  if (from_step_ > 0) log_->info("resumed after step {}", from_step_);
  log_class_names(data_->description(), *log_);
  log_stages(session_->compiled().stages, *log_);
  const std::string left_out = left_out_text(validation_data(), session_->model());
  if (!left_out.empty()) log_->warning("{}", left_out);
  log_->debug("data: {} examples to train, {} to validate", data_->examples(Split::kTrain),
              data_->examples(Split::kValidation));
}

void TrainingRun::tell_begin() {
  events_->session_begin({.folder = records_->folder(),
                          .from_step = from_step_,
                          .total_steps = request_.steps,
                          .to_step = last_step(),
                          .batch = request_.batch,
                          .micro_batches = request_.compile.training.micro_batches,
                          .training_examples = data_->examples(Split::kTrain),
                          .validation_examples = data_->examples(Split::kValidation),
                          .arena_bytes = program().arena().bytes,
                          .compiled = session_->shared_compiled()});
}

// Of a session that was stopped before its first step there is no result: it has trained nothing.
void TrainingRun::finish() {
  CHECK_INVARIANT(session_->executor().guard_intact());  // no kernel wrote beyond the arena
  if (step_ == request_.steps && !ended_early_ && request_.keeps_result && leads()) validate();
  stopped_ = stop_requested();
  if (has_result() && leads()) {
    save();
    const AveragesInUse averages(*trainer_);
    session_->export_inference(records_->model_file());
    if (!request_.export_file.empty()) {
      session_->export_inference(entry_of(request_.export_file));
    }
  }
  const bool all_done = !stopped_ && (step_ == request_.steps || ended_early_);
  status_ = all_done ? RunStatus::kFinished : RunStatus::kInterrupted;
  if (stopped_) exit_code_ = request_.stop_exit_code ? request_.stop_exit_code() : kStopExitCode;
  if (records_) records_->end(status_, exit_code_);
  events_->session_end(status_);
}

void TrainingRun::end_failed(const Error& error) {
  try {
    if (records_) {
      records_->end(RunStatus::kFailed, static_cast<int>(error.code()), error.message());
    }
  } catch (const std::exception&) {
    // A full disk takes no note of the failure either: the first one is the one to report.
  }
  try {
    if (opening_told_) events_->session_failed(error);
  } catch (const std::exception&) {
    // The first failure is the one to report here, too.
  }
}

TrainingResult TrainingRun::run() {
  try {
    begin();
    share_beginning();
    train();
    finish();
  } catch (const std::exception& exception) {
    Error error = error_of(exception);
    for (const auto& channel : {device_channel_, request_.ranks}) {
      if (channel) note_channel_failure(*channel, error);
    }
    tell_other_ranks(error);
    end_failed(error);
    throw error;
  }
  return result();
}

TrainingPreview TrainingRun::preview() {
  const ResumePoint point =
      find_resume_point(request_.resume, request_.run_folder, *log_, RunAccess::kLook);
  restore(point);
  return {.from_step = from_step_,
          .steps = request_.steps,
          .batch = request_.batch,
          .micro_batches = request_.compile.training.micro_batches,
          .training_examples = data_->examples(Split::kTrain),
          .calls = std::ssize(program().calls),
          .predicted_bytes = program().arena().bytes};
}

TrainingResult TrainingRun::result() const {
  return {.folder = records_ ? records_->folder() : fs::path(),
          .status = status_,
          .exit_code = exit_code_,
          .from_step = from_step_,
          .step = step_,
          .steps = request_.steps,
          .to_step = last_step(),
          .samples_seen = samples_seen_,
          .training_ms = training_ms_,
          .predicted_bytes = program().arena().bytes,
          .used_bytes = session_->shared_executor()->used_bytes(),
          .device_memory = memory_of(*program().device),
          .beyond_plan = session_->shared_executor()->beyond_plan(),
          .model = has_result() && records_ ? records_->folder() / kTrainedModelFile : fs::path(),
          .first = first_,
          .last = last_,
          .validation = validation_,
          .best = best_,
          .ended_early = ended_early_};
}

TrainingResult train(TrainRequest request, RunEvents& events, std::stop_token stop) {
  const std::shared_ptr<RunEvents> for_this_call(std::shared_ptr<void>(), &events);
  return TrainingRun(std::move(request), for_this_call, std::move(stop)).run();
}

}  // namespace trainscope
