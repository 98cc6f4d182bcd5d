// The records of a run's folder as plain structs, and its file names. docs/run-format.md is the
// description for other programs.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

// Raised when a reader of the earlier version would misread the folder. Readers accept this version
// and the two before it.
inline constexpr std::int64_t kRunFormat = 2;
inline constexpr std::int64_t kOldestReadableRunFormat = 1;

inline constexpr std::string_view kRunManifestFile = "manifest.json";
inline constexpr std::string_view kRunConfigFile = "config.toml";
inline constexpr std::string_view kRunPlanFile = "plan.bin";
inline constexpr std::string_view kRunReadablePlanFile = "plan.json";
inline constexpr std::string_view kRunMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kRunMetricsTableFile = "metrics.csv";
inline constexpr std::string_view kRunLogFile = "log.jsonl";
inline constexpr std::string_view kRunEventsFile = "events.cols";
inline constexpr std::string_view kRunNumericsFolder = "numerics";
// What a step whose loss was no number leaves: its batch, and where it was.
inline constexpr std::string_view kRunFailureFolder = "failure";
inline constexpr std::string_view kFailureFile = "failure.json";
inline constexpr std::string_view kFailureBatchFile = "batch.safetensors";
inline constexpr std::string_view kRunStagesFolder = "stages";
inline constexpr std::string_view kRunStagesFile = "stages.json";
inline constexpr std::string_view kRunSessionsFolder = "sessions";
// Of the stage in NN-NAME.onnx: NN-NAME.rewrites.jsonl.
std::string rewrites_file(std::string_view stage_file);
inline constexpr std::string_view kRunCheckpointsFolder = "checkpoints";
inline constexpr std::string_view kTrainedModelFile = "model.onnx";
inline constexpr std::string_view kTrainedModelDataFile = "model.onnx.data";  // beyond 1 GiB

// kRunning stays in the manifest of a process that was killed.
enum class RunStatus : std::uint8_t { kRunning, kFinished, kInterrupted, kFailed };

// "running", "finished", "interrupted", "failed".
std::string_view name_of(RunStatus status);

// One process that writes a run: the first, or one that resumed it.
struct RunSession {
  std::vector<std::string> command = {};
  std::string program_version = {};
  std::string device = {};
  std::string device_name = {};  // of a GPU, as its driver has it; empty: the CPU, or not known
  std::int64_t threads = 0;
  std::string isa = {};           // what the CPU's kernels use, whatever the device: "AVX-512"
  Json options = Json::object();  // resolved: name -> value
  Json machine = {};              // that plans weighed time with; null: the built-in one
  std::int64_t from_step = 0;
  std::string start_time = {};  // UTC, ISO 8601
  std::string end_time = {};    // empty while it runs
  RunStatus status = RunStatus::kRunning;
  std::int64_t exit_code = 0;
  std::int64_t last_step = 0;
  std::string message = {};  // of the error that ended it
};

struct RunManifest {
  std::int64_t format = kRunFormat;
  std::uint64_t seed = 0;
  Json options = Json::object();          // of the newest session
  Json model = Json::object();            // file, xxh3
  Json data = Json::object();             // Dataset::description()
  Json machine = {};                      // of the newest session
  std::vector<RunSession> sessions = {};  // the latest last, never empty in a folder
};

// What a pass nearly rewrote.
struct NearMissRecord {
  std::vector<std::string> nodes = {};  // the one it stands at first; never empty in a folder
  std::string reason = {};

  const std::string& node() const { return nodes.front(); }
};

// A graph after a pass; the file is stages/NN-NAME.onnx, or that of the stage before it where the
// pass changed nothing.
struct StageRecord {
  std::string name = {};
  std::string file = {};  // within stages/
  std::int64_t nodes_before = 0;
  std::int64_t nodes_after = 0;
  std::int64_t flops_before = 0;  // of all nodes
  std::int64_t flops_after = 0;
  std::int64_t bytes_before = 0;  // that all nodes read and write
  std::int64_t bytes_after = 0;
  // Of a step of it, as the machine's model has it, in seconds; NaN: not known.
  double seconds_after = std::numeric_limits<double>::quiet_NaN();
  // The most bytes of values that are alive at once, in the order of its nodes; -1: not known.
  std::int64_t live_bytes_after = -1;
  double milliseconds = 0.0;
  bool changed = false;
  std::string hash = {};
  std::map<std::string, std::int64_t> counters = {};
  std::vector<NearMissRecord> near_misses = {};
};

// One optimizer step. What is not measured is NaN or absent.
struct StepRecord {
  std::int64_t step = 0;  // from 1
  double loss = 0.0;
  double learning_rate = 0.0;
  double gradient_norm = 0.0;  // before clipping
  double step_ms = 0.0;
  std::int64_t samples = 0;  // examples in this step
  std::int64_t tokens = 0;
  std::vector<std::pair<std::string, double>> terms = {};  // of a loss that is a sum, by name
};

// An evaluation on the validation split after a step.
struct EvaluationRecord {
  std::int64_t step = 0;
  double loss = 0.0;
  double accuracy = 0.0;  // share of the labels that the highest score names; NaN without classes
  std::int64_t examples = 0;
  double milliseconds = 0.0;
};

struct Metrics {
  std::vector<StepRecord> steps = {};
  std::vector<EvaluationRecord> evaluations = {};

  // Wall time of a step: the median of all. 0 without steps.
  double median_step_ms() const;
};

Json to_json(const RunManifest& manifest);
Json to_json(const StageRecord& stage);
Json to_json(const StepRecord& step);
Json to_json(const EvaluationRecord& evaluation);

// These throw kBadInput naming the key. Unknown keys are skipped.
RunManifest run_manifest_from(const Json& json);
StageRecord stage_from(const Json& json);
StepRecord step_from(const Json& json);
EvaluationRecord evaluation_from(const Json& json);

}  // namespace trainscope
