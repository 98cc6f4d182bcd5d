// A trace of a training run's numbers: a row of statistics, a sketch and a hash for each tensor of
// the steps that were recorded. A folder, docs/run-format.md says how; other engines' recorders
// write the same.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "profiler/numerics/tensor_summary.h"

namespace trainscope::profiler {

inline constexpr std::string_view kTraceHeaderFile = "trace.json";
inline constexpr std::string_view kTraceValuesFile = "values.tsv";
inline constexpr std::string_view kTraceSketchFile = "sketch.bin";
inline constexpr std::string_view kTraceNamesFile = "names.tsv";
inline constexpr std::string_view kTraceFullFolder = "full";
inline constexpr std::string_view kTraceNoiseFile = "noise.tsv";
inline constexpr std::string_view kTraceOracleFolder = "oracle";
inline constexpr std::int64_t kTraceFormat = 1;

enum class TracePhase : std::uint8_t { kInput, kForward, kBackward, kUpdate };
std::string_view name_of(TracePhase phase);  // "input", "forward", "backward", "update"

// What a row's tensor is; names are those of its value, parameter or state in the ONNX model.
enum class TraceKind : std::uint8_t {
  kInput,               // "input": of the batch
  kActivation,          // "act": a value of the model
  kLoss,                // "loss"
  kActivationGradient,  // "dact": of the loss by a value
  kGradient,            // "grad": of the loss by a parameter, before clipping
  kParameter,           // "param": after the step; of step 0, before the first
  kState,               // "state": of the optimizer or the model, after the step
  kOwn,                 // "own": a value that the engine alone has, under its name there
};
inline constexpr int kTraceKinds = 8;
std::string_view name_of(TraceKind kind);
std::optional<TraceKind> trace_kind_named(std::string_view name);

struct TraceRow {
  std::int64_t step = 0;         // from 1; 0: before the first
  std::int64_t micro_batch = 0;  // of the step, from 0; of the update 0
  TracePhase phase = TracePhase::kForward;
  std::int64_t order = 0;  // within the step: as the tensors were made
  TraceKind kind = TraceKind::kActivation;
  std::string value;
  std::string op = {};      // that made it; empty: none did
  std::string node = {};    // its name in the engine's graph
  std::string kernel = {};  // that ran
  std::string dtype = {};   // "f32"
  std::string shape = {};   // "2x3"; "scalar"
  TensorStatistics statistics = {};
  std::uint64_t hash = 0;

  // "grad:w1": unique within a step and micro-batch.
  std::string key() const;
};

// What became of an ONNX value, where rows have other names or none.
struct TraceName {
  std::string value;  // in the model
  std::string fate;   // "kept", "renamed", "inside", "split", "folded", "dead", "replaced"
  std::string row;    // the value whose rows have its elements; empty: none has
  std::string reason = {};
};

// What rounding makes of a tensor: the L2 error of f32 over the L2 norm, the largest of several
// orders of the batch. Where the norm is 0 it is the error itself. Of a parameter: by how much of
// its first step its gradient's noise may move it elsewhere.
struct TraceNoise {
  std::string key;
  double relative = 0.0;
};

// trace.json: what was run. Comparers refuse traces of different models, or batches.
struct TraceHeader {
  std::string producer;    // "trainscope", "pytorch", "onnxruntime"
  std::string version;     // of the producer
  std::string model = {};  // XXH3 of the model file's bytes, 16 hexadecimal digits; empty: unknown
  std::string mode = "fused";  // or "all": each value of the model by itself
  std::int64_t micro_batches = 1;
  std::uint64_t sketch_seed = kSketchSeed;
  Json more = Json::object();  // what else the producer says: device, threads, precision, seed ..
};

// Writes a trace, a step at a time: the rows are whole lines, and each has its sketch before it.
class TraceWriter {
 public:
  // Into a folder without a trace. kIo when something cannot be written, here and below.
  TraceWriter(const Folder& folder, const TraceHeader& header);

  // Keeps it until flush(): some 1.2 KB.
  void add(const TraceRow& row, const Sketch& sketch);
  void write_names(const std::vector<TraceName>& names);
  void write_noise(const std::vector<TraceNoise>& noise);
  // What was added is in the files then.
  void flush();
  // Waits for the disk.
  void sync();
  std::int64_t rows() const { return rows_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Folder folder_;
  AppendFile values_;
  AppendFile sketches_;
  std::string lines_;
  std::vector<Sketch> waiting_;
  std::int64_t rows_ = 0;
  std::uint64_t bytes_ = 0;
};

// What a trace's folder holds. A row or sketch that was cut short is left out, with all after it.
class Trace {
 public:
  // Throws kBadInput for what is no trace, kIo for what cannot be read.
  static Trace open(const Folder& folder);
  static Trace open(const std::filesystem::path& folder) { return open(Folder::open(folder)); }

  const TraceHeader& header() const { return header_; }
  const std::vector<TraceRow>& rows() const { return rows_; }
  const std::vector<TraceName>& names() const { return names_; }
  const std::vector<TraceNoise>& noise() const { return noise_; }  // of an oracle alone
  // The truth about the first recorded step, in f64; none where it was not computed.
  std::optional<Trace> oracle() const;
  Sketch sketch(std::size_t row) const;
  // Whose forward phase is there, ascending: where a run was resumed, parameters and states alone
  // are of the step before.
  std::vector<std::int64_t> steps() const;
  const Folder& folder() const { return folder_; }

 private:
  explicit Trace(Folder folder) : folder_(std::move(folder)) {}
  void read_rows();
  void read_names();
  void read_noise();

  Folder folder_;
  TraceHeader header_;
  std::vector<TraceRow> rows_;
  std::vector<TraceName> names_;
  std::vector<TraceNoise> noise_;
  std::shared_ptr<const MappedFile> sketches_;
};

}  // namespace trainscope::profiler
