// The loop of `train` and what surrounds it.
#include "cli/run/training_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "cli/exit_codes.h"
#include "cli/flags/data_fields.h"
#include "cli/flags/duration.h"
#include "cli/flags/loss_spec.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "cli/run/evaluation.h"
#include "cli/run/run_records.h"
#include "datasets/prefetch.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/record.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void check_trains(const Compiled& compiled) {
  const Graph& graph = compiled.program.graph;
  if (graph.loss != kNoValue && !graph.updates.empty()) return;
  throw Error(ErrorCode::kUsage, "the compiled graph has no training step")
      .at(fmt::format("after pass {}", compiled.stages.back().name))
      .hint("leave out --stop-after, or the --disable of a pass that training needs");
}

// The data that must be the same to go on; its file may have moved.
Json data_identity(const Json& description) {
  Json identity = Json::object();
  for (const JsonMember& member : description.as_object()) {
    const bool left_out = member.key == "file" || member.key == "vocabulary";
    if (!left_out) identity.set(member.key, member.value);
  }
  return identity;
}

// Whether `file` belongs right into the run's folder, which the session makes.
bool is_in_run_folder(const std::string& file, const Settings& settings) {
  if (!settings.has("run-dir")) return false;
  const fs::path run = fs::absolute(settings.text("run-dir") + "/").lexically_normal();
  return fs::absolute(file).lexically_normal().parent_path() == run.parent_path();
}

// Otherwise a long run would end with an error. Only making a file shows whether it can be made;
// --dry-run makes none.
void check_export(const Settings& settings) {
  if (!settings.has("export") || is_in_run_folder(settings.text("export"), settings)) return;
  try {
    FolderEntry target = entry_of(settings.text("export"));
    if (!settings.on("dry-run")) AtomicFile not_committed(std::move(target));
  } catch (Error& error) {
    error.at("--export");
    throw;
  }
}

void log_stages(const Stages& stages, Logger& log) {
  for (const Stage& stage : stages) {
    log.debug("{}: {} nodes, {:.2f} ms{}", stage.label, stage.nodes, stage.milliseconds,
              stage.changed ? "" : ", unchanged");
  }
}

std::string validation_text(const EvaluationRecord& record) {
  const std::string accuracy =
      std::isnan(record.accuracy) ? "" : fmt::format(", accuracy {:.4f}", record.accuracy);
  return fmt::format("loss {:.6g}{} over {} examples", record.loss, accuracy, record.examples);
}

// What does not keep a run from going on. With --deterministic strict the threads do not matter.
Json about_settings(const Invocation& invocation, SameBits bits) {
  const bool strict = bits == SameBits::kAnyThreads;
  Json about = Json::object({{"version", program_version()},
                             {"deterministic", strict ? "strict" : "threads"},
                             {"isa", vector_isa()}});
  if (!strict) about.set("threads", invocation.threads());
  return about;
}

Json dims_json(const Sizes& sizes) {
  Json json = Json::object();
  for (const auto& [symbol, size] : sizes.dims) json.set(symbol, size);
  for (const auto& [input, shape] : sizes.shapes) json.set(input, Json::list(shape));
  return json;
}

}  // namespace

TrainingRun::TrainingRun(const Invocation& invocation)
    : invocation_(invocation),
      settings_(invocation.settings()),
      model_(OnnxModel::read(invocation.argument(0))),
      metrics_(metrics_forms(settings_)),
      total_steps_(settings_.integer("steps")) {
  if (settings_.has("time-limit")) {
    const auto limit = parse_duration("time-limit", settings_.text("time-limit"));
    deadline_ = started_ + std::chrono::duration_cast<Clock::duration>(limit);
  }
  check_export(settings_);
  const std::string& source = settings_.text("data");
  sizes_ = resolve_sizes_with_data(model_, size_request(settings_), source);
  require_examples(model_, sizes_);
  options_ = compile_options(invocation_, model_, sizes_);
  schedule_ = training_schedule(settings_, total_steps_);
  session_ = std::make_unique<Session>(model_, options_);
  check_trains(session_->compiled());
  DatasetOptions wanted =
      dataset_options(session_->compiled(), model_, options_.training.loss, sizes_);
  wanted.seed = invocation_.seed();
  data_ = open_dataset(source, wanted);
  order_ = BatchOrder::training(data_->examples(Split::kTrain), sizes_.batch, invocation_.seed());
  trainer_.emplace(session_->shared_executor(), options_.training.micro_batches);
}

CheckpointState TrainingRun::state() const {
  const LossOptions& loss = options_.training.loss;
  Json settings = Json::object({{"model", hash_hex(model_.hash())},
                                {"loss", loss_text(loss)},
                                {"optimizer", optimizer_json(options_.training.optimizer)},
                                {"schedule", schedule_json(schedule_)},
                                {"batch", sizes_.batch},
                                {"sizes", dims_json(sizes_)},
                                {"accumulate", options_.training.micro_batches},
                                {"train", Json::list(options_.import.trainable)},
                                {"freeze", Json::list(options_.import.frozen)},
                                {"disable", Json::list(options_.passes.disabled)},
                                {"stop_after", options_.passes.stop_after},
                                {"kernels", settings_.text("kernels")},
                                {"data", data_identity(data_->description())}});
  // Runs from before it existed were f32, and say nothing.
  const StepPrecision precision = options_.training.precision;
  if (precision != StepPrecision::kF32) settings.set("precision", name_of(precision));
  settings.set(std::string(kAboutSettings), about_settings(invocation_, options_.lower.same_bits));
  return {.step = step_,
          .samples_seen = samples_seen_,
          .seed = invocation_.seed(),
          .settings = std::move(settings),
          .metrics = metrics()};
}

// What is known at this step, the same for a resumed run as for one that was not interrupted.
Json TrainingRun::metrics() const {
  Json metrics = Json::object();
  if (last_) metrics.set("loss", last_->loss);
  if (best_) metrics.set("best", Json::object({{"step", best_->step}, {"loss", best_->loss}}));
  return metrics;
}

void TrainingRun::restore(const Checkpoint& checkpoint) {
  check_settings(checkpoint, state(), invocation_.log());
  require(checkpoint.state.step <= total_steps_, ErrorCode::kUsage,
          "the checkpoint is at step {}, beyond --steps {}", checkpoint.state.step, total_steps_);
  trainer_->restore(checkpoint.file("model"), trainer_->model_tensors());
  trainer_->restore(checkpoint.file("optimizer"), trainer_->optimizer_tensors());
  from_step_ = step_ = checkpoint.state.step;
  samples_seen_ = checkpoint.state.samples_seen;
}

// The best checkpoint as of the one that the run goes on from. A run in another folder, or one that
// was set back to before its best checkpoint was replaced, looks for a best one anew.
void TrainingRun::restore_best(const ResumePoint& point) {
  if (!point.continues_run || !point.checkpoint) return;
  const Json* best = point.checkpoint->state.metrics.find("best");
  if (best == nullptr) return;
  const BestCheckpoint then{.step = best->get<std::int64_t>("step"),
                            .loss = best->get<double>("loss")};
  const Folder& root = writer_->checkpoints_folder();
  if (!root.has(checkpoint_name(then.step))) return;
  best_ = then;
  note_best_checkpoint(root, then);
}

void TrainingRun::open_writer(ResumePoint& point) {
  RunSession session = run_session(invocation_, from_step_);
  if (point.continues_run) {
    writer_.emplace(RunWriter::resume(std::move(*point.lock), std::move(session)));
    if (point.checkpoint) saved_step_ = step_;
  } else {
    RunManifest manifest{.seed = invocation_.seed(),
                         .options = resolved_options(invocation_, options_.training.loss, sizes_),
                         .model = model_facts(model_),
                         .data = data_->description(),
                         .sessions = {std::move(session)}};
    if (point.run_folder.empty()) {
      point.run_folder = create_numbered_run_folder("runs", run_name(model_.path()));
    }
    if (!point.lock) point.lock = RunLock::make(point.run_folder);
    writer_.emplace(RunWriter::create(std::move(*point.lock), std::move(manifest)));
  }
}

void TrainingRun::begin() {
  Logger& log = invocation_.log();
  ResumePoint point = find_resume_point(settings_, log, RunAccess::kWrite);
  if (point.checkpoint) restore(*point.checkpoint);
  signals_.emplace();
  open_writer(point);
  writer_->also_write(metrics_);
  restore_best(point);
  // A run that starts from another one's checkpoint can be resumed by itself from the begin on.
  if (point.checkpoint && !point.continues_run) save();
  log.open_file(writer_->log_file());
  writer_->write_config(config_toml(resolved_options(invocation_, options_.training.loss, sizes_)));
  write_stages(*writer_, session_->compiled().stages, [this] { return stop_requested(); });
  if (stop_requested()) return;
  const Compiled& compiled = session_->compiled();
  const Program& program = compiled.program;
  Json plan = plan_record(program);
  if (compiled.recompute) plan.set("recompute", recompute_record(*compiled.recompute));
  writer_->write_plan(plan);
  log.info("{}: {} steps of {} x {} examples, {} parameter tensors, an arena of {}",
           printable(writer_->folder().string()), total_steps_ - from_step_,
           options_.training.micro_batches, sizes_.batch,
           program.graph.values_of(ValueKind::kParameter).size(),
           human_bytes(static_cast<std::uint64_t>(program.arena.bytes)));
  if (from_step_ > 0) log.info("resumed after step {}", from_step_);
  log_stages(session_->compiled().stages, log);
  log.debug("data: {} examples to train, {} to validate", data_->examples(Split::kTrain),
            data_->examples(Split::kValidation));
}

void TrainingRun::train_step(std::int64_t step, BatchSource& batches) {
  const auto start = std::chrono::steady_clock::now();
  const double learning_rate = learning_rate_at(schedule_, step);
  const StepResult result = trainer_->run_step(step, learning_rate, batches);
  const StepRecord record{.step = step,
                          .loss = result.loss,
                          .learning_rate = learning_rate,
                          .gradient_norm = result.gradient_norm.value_or(kNotMeasured),
                          .step_ms = milliseconds_since(start),
                          .samples = result.examples,
                          .tokens = result.tokens};
  step_ = step;
  samples_seen_ += result.examples;
  training_ms_ += record.step_ms;
  if (!first_) first_ = record;
  last_ = record;
  writer_->add_step(record);
  progress_->step(record, session_->executor().used_bytes());
}

// Each session does a step at least, so that a run that is resumed again and again ends.
bool TrainingRun::out_of_time() const { return deadline_ && Clock::now() >= *deadline_; }

void TrainingRun::train() {
  const std::int64_t micro_batches = options_.training.micro_batches;
  Prefetcher batches(data_, *order_,
                     {.first = order_->batch_after(samples_seen_),
                      .count = (total_steps_ - step_) * micro_batches});
  const std::int64_t save_every = settings_.integer("save-every");
  const std::int64_t evaluate_every = settings_.integer("eval-every");
  progress_.emplace(progress_style(settings_), total_steps_,
                    session_->compiled().program.arena.bytes);
  while (step_ < total_steps_ && !stop_requested()) {
    if (step_ > from_step_ && out_of_time()) break;
    train_step(step_ + 1, batches);
    const bool is_last = step_ == total_steps_;
    if (evaluate_every > 0 && step_ % evaluate_every == 0 && !is_last) validate();
    if (save_every > 0 && step_ % save_every == 0) save();
  }
  progress_.reset();
}

void TrainingRun::save() {
  if (saved_step_ == step_) return;
  const std::vector<NamedTensor> model = trainer_->model_tensors();
  const std::vector<NamedTensor> optimizer = trainer_->optimizer_tensors();
  const CheckpointFile files[] = {{.name = "model", .tensors = model},
                                  {.name = "optimizer", .tensors = optimizer}};
  const Folder& root = writer_->checkpoints_folder();
  save_checkpoint(root, state(), files);
  remove_old_checkpoints(root, step_, static_cast<int>(settings_.integer("keep")));
  saved_step_ = step_;
  invocation_.log().debug("step {}: saved a checkpoint", step_);
}

// A better model than all before: its checkpoint stays until there is a better one.
void TrainingRun::note_if_best(double loss) {
  const bool wanted = settings_.integer("eval-every") > 0 && settings_.on("keep-best");
  if (!wanted || (best_ && best_->loss <= loss)) return;
  best_ = {.step = step_, .loss = loss};
  save();
  note_best_checkpoint(writer_->checkpoints_folder(), *best_);
  invocation_.log().debug("step {}: the best checkpoint so far", step_);
}

void TrainingRun::validate() {
  const auto start = std::chrono::steady_clock::now();
  const std::optional<Evaluation> evaluation = evaluate_validation(
      *session_, options_.import,
      {.data = data_, .batch = sizes_.batch, .loss = options_.training.loss, .stop = [this] {
         return stop_requested();
       }});
  if (!evaluation) return;
  if (!std::isfinite(evaluation->loss)) {
    throw Error(ErrorCode::kNumeric,
                fmt::format("the validation loss after step {} is {}", step_, evaluation->loss))
        .hint("lower --lr, clip gradients (--clip 1), or look at the validation data");
  }
  validation_ = EvaluationRecord{.step = step_,
                                 .loss = evaluation->loss,
                                 .accuracy = evaluation->accuracy().value_or(kNotMeasured),
                                 .examples = evaluation->examples,
                                 .milliseconds = milliseconds_since(start)};
  writer_->add_evaluation(*validation_);
  if (progress_) progress_->clear();
  invocation_.log().info("step {}: validation {}", step_, validation_text(*validation_));
  note_if_best(evaluation->loss);
}

// A session that was stopped before its first step has trained nothing.
bool TrainingRun::has_result() const { return stopped_ == 0 || step_ > from_step_; }

void TrainingRun::finish() {
  CHECK_INVARIANT(session_->executor().guard_intact());  // no kernel wrote beyond the arena
  if (step_ == total_steps_) validate();
  stopped_ = signals_->requested();
  if (has_result()) {
    save();
    session_->export_inference(writer_->model_file());
    if (settings_.has("export")) session_->export_inference(entry_of(settings_.text("export")));
  }
  const bool all_done = stopped_ == 0 && step_ == total_steps_;
  writer_->finish(all_done ? RunStatus::kFinished : RunStatus::kInterrupted, stopped_);
}

void TrainingRun::end_failed(const Error& error) {
  progress_.reset();
  if (!writer_) return;
  try {
    writer_->finish(RunStatus::kFailed, static_cast<int>(error.code()), error.message());
  } catch (const std::exception&) {
    // A full disk takes no note of the failure either: the first one is the one to report.
  }
}

Outcome TrainingRun::run() {
  try {
    begin();
    train();
    finish();
  } catch (const std::exception& exception) {
    const Error error = error_of(exception);
    end_failed(error);
    throw error;
  }
  Outcome outcome{.exit_code = stopped_};
  outcome.facts = summary();
  outcome.text = summary_text();
  return outcome;
}

Outcome TrainingRun::preview() {
  const ResumePoint point = find_resume_point(settings_, invocation_.log(), RunAccess::kLook);
  if (point.checkpoint) restore(*point.checkpoint);
  const Program& program = session_->compiled().program;
  const std::int64_t examples = data_->examples(Split::kTrain);
  return {.facts = Json::object({{"dry_run", true},
                                 {"from_step", from_step_},
                                 {"steps", total_steps_},
                                 {"batch", sizes_.batch},
                                 {"micro_batches", options_.training.micro_batches},
                                 {"training_examples", examples},
                                 {"instructions", program.times},
                                 {"predicted_bytes", program.arena.bytes}}),
          .text = fmt::format("would train steps {} to {} of {} x {} examples, {} in all\n"
                              "memory      arena of {} bytes predicted, {} instructions a step\n",
                              from_step_ + 1, total_steps_, options_.training.micro_batches,
                              sizes_.batch, examples, program.arena.bytes, program.times)};
}

Json TrainingRun::summary() const {
  const Program& program = session_->compiled().program;
  Json json = Json::object({{"run", writer_->folder().string()},
                            {"status", name_of(writer_->manifest().sessions.back().status)},
                            {"step", step_},
                            {"steps", total_steps_},
                            {"from_step", from_step_},
                            {"samples_seen", samples_seen_},
                            {"training_ms", training_ms_},
                            {"predicted_bytes", program.arena.bytes},
                            {"used_bytes", session_->executor().used_bytes()}});
  if (has_result()) json.set("model", (writer_->folder() / kTrainedModelFile).string());
  if (first_) json.set("first_loss", first_->loss);
  if (last_) json.set("last_loss", last_->loss);
  if (validation_) {
    json.set("validation", Json::object({{"loss", validation_->loss},
                                         {"accuracy", validation_->accuracy},
                                         {"examples", validation_->examples}}));
  }
  if (best_) {
    json.set("best", Json::object({{"step", best_->step}, {"loss", best_->loss}}));
  }
  return json;
}

std::string TrainingRun::summary_text() const {
  const Program& program = session_->compiled().program;
  const std::string folder = printable(writer_->folder().string());
  std::string text;
  if (step_ < total_steps_) {
    text += fmt::format("stopped after step {} of {}; --run-dir {} --resume auto goes on\n", step_,
                        total_steps_, folder);
  }
  if (last_) {
    const double seconds = training_ms_ / 1000.0;
    const auto samples = static_cast<double>((step_ - from_step_) * last_->samples);
    text +=
        fmt::format("steps       {} to {}, loss {:.6g} to {:.6g}, {:.1f} s, {:.0f} samples/s\n",
                    from_step_ + 1, step_, first_->loss, last_->loss, seconds, samples / seconds);
  }
  if (validation_) {
    text += fmt::format("validation  {}\n", validation_text(*validation_));
  }
  text += fmt::format("memory      arena of {} bytes predicted, {} bytes used\n",
                      program.arena.bytes, session_->executor().used_bytes());
  if (has_result()) text += fmt::format("model       {}/{}\n", folder, kTrainedModelFile);
  text += fmt::format("run         {} (trainscope inspect {})\n", folder, folder);
  return text;
}

}  // namespace trainscope
