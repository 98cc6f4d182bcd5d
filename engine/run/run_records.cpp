// Manifest, options, stages, plan and metrics of a run.
#include "engine/run/run_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/core/hash.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/functions/user_gradients.h"
#include "engine/machine/machine_file.h"
#include "engine/onnx/export.h"
#include "engine/record.h"
#include "engine/record_plan.h"
#include "engine/run/run_settings.h"
#include "engine/train/data.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Null for the machine that is built in.
Json machine_record(const Machine& machine) {
  return machine == default_machine() ? Json() : machine_json(machine);
}

RunSession session_of(const TrainRequest& request, const ResumePoint& point) {
  const DeviceHandle device = request.compile.device ? request.compile.device : cpu_device();
  return {.command = request.notes.command,
          .program_version = request.notes.program_version,
          .device = std::string(device->facts().name),
          .device_name = request.notes.device_name,
          .threads = request.compile.lower.threads,
          .isa = std::string(cpu_isa()),
          .options = request.notes.options,
          .machine = machine_record(request.compile.machine),
          .from_step = point.checkpoint ? point.checkpoint->state.step
                       : request.start  ? request.start->step
                                        : 0};
}

RunWriter writer_of(ResumePoint& point, const TrainRequest& request, const Dataset& data) {
  RunSession session = session_of(request, point);
  if (point.continues_run) return RunWriter::resume(std::move(*point.lock), std::move(session));
  Json model = model_facts(request.model);
  if (request.compile.import.gradients) {
    model.set(std::string(kGradientsHash), hash_hex(request.compile.import.gradients->hash()));
  }
  RunManifest manifest{.seed = request.seed,
                       .model = std::move(model),
                       .data = data.description(),
                       .sessions = {std::move(session)}};
  if (point.run_folder.empty()) {
    point.run_folder = create_numbered_run_folder("runs", run_name(request.model.path()));
  }
  if (!point.lock) point.lock = RunLock::make(point.run_folder);
  return RunWriter::create(std::move(*point.lock), std::move(manifest));
}

// Whether somebody has asked to stop, with a look at how far the record is.
bool stops(const Watch& watch, std::string_view now, std::size_t done, std::size_t total) {
  if (watch.progress) {
    watch.progress({.work = "record",
                    .now = now,
                    .done = static_cast<std::int64_t>(done),
                    .total = static_cast<std::int64_t>(total)});
  }
  return watch.stop.stop_requested();
}

// False when it was asked to stop before all were written.
bool write_stages(RunWriter& writer, const Stages& stages, const Watch& watch) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stops(watch, stages[i].name, i, stages.size())) return false;
    StageRecord record = stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]);
    if (!writer.repeats_last_stage(record)) {
      write_onnx(stages[i].graph, writer.next_stage_file(stages[i].name),
                 {.weights = Weights::kOmit, .tensor = {}});
    }
    writer.add_stage(std::move(record), rewrite_log_text(stages[i].rewrites));
  }
  return !stops(watch, "plan", stages.size(), stages.size());
}

}  // namespace

std::shared_ptr<RunRecords> RunRecords::open(ResumePoint& point, const TrainRequest& request,
                                             const Dataset& data) {
  return std::make_shared<RunRecords>(writer_of(point, request, data), request.ranks == nullptr);
}

void RunRecords::write_compiled(const std::string& config, const Compiled& compiled,
                                const Watch& watch) {
  writer_.write_config(config);
  if (!write_stages(writer_, compiled.stages, watch)) return;
  writer_.write_plan(plan_record(compiled));
}

void RunRecords::step_end(const StepRecord& step, std::int64_t /*used_bytes*/) {
  writer_.add_step(step);
}

// What fails here does not stand in the way of the failure that is told.
void RunRecords::bad_loss(const StepPlace& at, const Batch& batch, double loss) {
  try {
    write_failure(at, batch, loss);
  } catch (const std::exception&) {
  }
}

void RunRecords::write_failure(const StepPlace& at, const Batch& batch, double loss) {
  const Folder folder = writer_.failure_folder();
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : batch.tensors) {
    const bool has_type = !row_of(tensor.dtype()).safetensors_name.empty();
    const DType nearest = is_float(tensor.dtype()) ? DType::kF32 : DType::kI64;
    tensors.push_back(has_type ? tensor : convert(tensor, nearest));
  }
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({.name = batch.tensors[i].first, .tensor = tensors[i].view()});
  }
  write_safetensors(folder / kFailureBatchFile, named, {{"step", std::to_string(at.step)}});
  Json json = Json::object({{"step", at.step},
                            {"micro_batch", at.micro_batch},
                            {"loss", std::isnan(loss) ? "NaN" : "infinite"},
                            {"batch", kFailureBatchFile}});
  if (replays_) json.set("command", first_nan_command(writer_.folder()));
  write_file_atomic(folder / kFailureFile, json.dump(2) + "\n");
}

void RunRecords::evaluation_end(const EvaluationRecord& evaluation) {
  writer_.add_evaluation(evaluation);
}

void RunRecords::end(RunStatus status, std::int64_t exit_code, std::string message) {
  writer_.finish(status, exit_code, std::move(message));
}

std::string first_nan_command(const fs::path& run) {
  return fmt::format("trainscope at {} --first-nan", shell_word(run.string()));
}

std::string run_name(const fs::path& model) {
  std::string name = model.stem().string();
  if (name == "model") {
    std::error_code error;
    const std::string folder = fs::absolute(model, error).parent_path().filename().string();
    if (!error && !folder.empty()) name = folder;
  }
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; }, '_');
  return name;
}

}  // namespace trainscope
