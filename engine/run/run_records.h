// The record of a run: all that its driver writes into the folder besides checkpoints and models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "engine/bundle/writer.h"
#include "engine/compile.h"
#include "engine/run/resume.h"
#include "engine/run/run_events.h"
#include "engine/run/train_request.h"

namespace trainscope {

// A listener as any other; what cannot be written throws kIo.
class RunRecords final : public RunEvents {
 public:
  // Begins the run's folder, or a session of the run in it, as `point` says. Takes its lock.
  static std::shared_ptr<RunRecords> open(ResumePoint& point, const TrainRequest& request,
                                          const Dataset& data);
  // `replays`: whether the run's steps can be run again, as those of several ranks cannot.
  RunRecords(RunWriter writer, bool replays) : writer_(std::move(writer)), replays_(replays) {}

  // Before the first step of the session.
  void also_write(const MetricsForms& forms) { writer_.also_write(forms); }
  // Options, stages and plan. Tells of each stage, work "record"; ends early when asked to stop.
  void write_compiled(const std::string& config, const Compiled& compiled, const Watch& watch);
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  // Keeps the batch, and the command that shows what became of it, where there is one.
  void bad_loss(const StepPlace& at, const Batch& batch, double loss) override;
  void evaluation_end(const EvaluationRecord& evaluation) override;
  // How the session ended; without it the record says "running", as after a crash.
  void end(RunStatus status, std::int64_t exit_code, std::string message = {});

  const std::filesystem::path& folder() const { return writer_.folder(); }
  const Folder& checkpoints_folder() const { return writer_.checkpoints_folder(); }
  FolderEntry log_file() const { return writer_.log_file(); }
  FolderEntry events_file() const { return writer_.events_file(); }
  // Made where there is none; without a trace of this session.
  Folder numerics_folder() const { return writer_.numerics_folder(); }
  FolderEntry model_file() const { return writer_.model_file(); }

 private:
  void write_failure(const StepPlace& at, const Batch& batch, double loss);

  RunWriter writer_;
  const bool replays_;
};

// "trainscope at RUN --first-nan", for a shell.
std::string first_nan_command(const std::filesystem::path& run);

// "mlp" for models/mlp/model.onnx, "net" for net.onnx: for the folder's name.
std::string run_name(const std::filesystem::path& model);

}  // namespace trainscope
