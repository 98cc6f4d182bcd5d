// A model as a source: compiled on a thread of its own, its plan and stages in memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/error.h"
#include "engine/core/progress.h"
#include "engine/core/text.h"
#include "engine/machine/this_machine.h"
#include "engine/model_loss.h"
#include "engine/model_sizes.h"
#include "engine/onnx/input_shapes.h"
#include "engine/record.h"
#include "engine/record_plan.h"
#include "gui/data/model_opening.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {
namespace {

ImportOptions import_options(const OnnxModel& model, const SizeRequest& request) {
  Sizes sizes = resolve_sizes(model, request);
  ImportOptions options{.dims = std::move(sizes.dims), .shapes = std::move(sizes.shapes)};
  if (request.max_trips > 0) options.max_trips = request.max_trips;
  require_input_shapes(model, options);
  return options;
}

OpenedModel compiled_model(const OnnxModel& model, ImportOptions import, const Watch& watch) {
  CompileOptions options{.import = std::move(import)};
  resolve_loss_output(model, options.training.loss);
  options.lower.threads = usable_cores();
  options.passes.keep = KeepGraphs::kAll;
  options.watch = watch;
  auto compiled = compile(model, options);
  OpenedModel opened{.plan = StoredPlan(plan_record(*compiled))};
  const Stages& stages = compiled->stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    opened.stages.push_back({.label = stages[i].label,
                             .record = stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1])});
  }
  opened.history = std::make_unique<StageHistory>(StageHistory::of(std::move(compiled->stages)));
  return opened;
}

}  // namespace

void check_sizes(const std::filesystem::path& path, const SizeRequest& sizes) {
  import_options(OnnxModel::read(path), sizes);
}

ModelOpening::ModelOpening(std::filesystem::path path, SizeRequest sizes)
    : path_(std::move(path)),
      sizes_(std::move(sizes)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ModelOpening::run(const std::stop_token& stop) {
  const auto show = [this](const Progress& moment) {
    std::string now = moment.now.empty() ? std::string(moment.work)
                                         : fmt::format("{}: {}", moment.work, moment.now);
    const std::scoped_lock lock(mutex_);
    now_ = std::move(now);
  };
  std::optional<OpenedModel> model;
  std::exception_ptr fault;
  bool is_sized = true;
  try {
    const OnnxModel read = OnnxModel::read(path_);
    is_sized = false;
    ImportOptions import = import_options(read, sizes_);
    is_sized = true;
    model.emplace(compiled_model(read, std::move(import), {.stop = stop, .progress = show}));
  } catch (...) {  // whoever takes it gets it
    fault = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  wants_sizes_ = !is_sized;
  model_ = std::move(model);
  fault_ = fault;
  ended_ = true;
  ended_changed_.notify_all();
}

std::string ModelOpening::now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

bool ModelOpening::has_ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_;
}

bool ModelOpening::wants_sizes() const {
  const std::scoped_lock lock(mutex_);
  return wants_sizes_;
}

void ModelOpening::wait() const {
  std::unique_lock lock(mutex_);
  ended_changed_.wait(lock, [this] { return ended_; });
}

OpenedModel ModelOpening::take() {
  const std::scoped_lock lock(mutex_);
  if (fault_) std::rethrow_exception(fault_);
  return *std::exchange(model_, std::nullopt);
}

void RunData::begin_model() {
  const std::string train = fmt::format("trainscope train {} --data synthetic", words());
  set_message(Topic::kMetrics, "a model alone has no steps: train it to see some", train);
  set_message(Topic::kProfile, "a model alone has no times: train it to see some",
              train + " --profile steps=+6:25");
  opening_ = std::make_unique<ModelOpening>(path_, sizes_);
  set_message(Topic::kSource, opening_->now());
}

bool RunData::look_at_opening() {
  if (!opening_->has_ended()) {
    std::string now = opening_->now();
    const bool is_new = now != message(Topic::kSource).text;
    if (is_new) set_message(Topic::kSource, std::move(now));
    return is_new;
  }
  const std::unique_ptr<ModelOpening> ended = std::move(opening_);
  wants_sizes_ = ended->wants_sizes();
  set_message(Topic::kSource, {});
  ++version_;
  ++reading_;
  try {
    OpenedModel model = ended->take();
    stored_plan_ = std::move(model.plan);
    plan_ = stored_plan_->view();
    stages_ = std::move(model.stages);
    history_.emplace(std::move(model.history));
  } catch (const Stopped&) {
    set_message(Topic::kSource, "compiling was stopped");
  } catch (const std::exception& exception) {
    set_message(Topic::kSource, line_of(error_of(exception)));
  }
  return true;
}

void RunData::compile_with(SizeRequest sizes) {
  sizes_ = std::move(sizes);
  read_all();
}

void RunData::stop_opening() {
  if (opening_) opening_->stop();
}

void RunData::wait() {
  if (!opening_) return;
  opening_->wait();
  look_at_opening();
}

}  // namespace trainscope::gui
