// A verb's first argument when it may be a model file or a run's folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/flags/invocation.h"
#include "engine/bundle/reader.h"
#include "engine/session.h"

namespace trainscope {

class Source {
 public:
  // Throws kIo when there is nothing, kBadInput when a folder is no run.
  static Source open(const std::string& path);
  // Also a builder's model that no file holds, "gpt2:1558M": its shapes, without elements.
  static Source open_or_build(const std::string& word);

  bool is_run() const { return run_.has_value(); }
  bool is_built() const { return built_; }  // by a builder: shapes, without elements
  const RunReader& run() const { return *run_; }

  // The file of a run's model, where it is now.
  std::filesystem::path model_file() const;

  // The call with a run's options where it has none of its own.
  Invocation settle(const Invocation& invocation) const;

  // The model as it was given to `train`. Throws kBadInput when a run's model has changed since.
  OnnxModel original_model() const;

  // A model and where its trained values are, if not in the file.
  struct Trained {
    OnnxModel model;
    std::shared_ptr<const Checkpoint> checkpoint;  // null: none
  };
  // Of a run: the trained file, or what the newest checkpoint holds when the run did not get there.
  Trained trained_model(Logger& log) const;
  // Of a run: its newest checkpoint that is whole; null where there is none yet.
  std::shared_ptr<const Checkpoint> newest_checkpoint(Logger& log) const;
  // Of a run: its best checkpoint. Throws kUsage when this is no run, or one without validations.
  Trained best_model() const;
  // The one of these that --best asks for.
  Trained trained_model(const Invocation& invocation) const;

 private:
  std::filesystem::path path_;  // or the builder's model
  std::optional<RunReader> run_;
  bool built_ = false;
};

// Those that a run was trained with; of a folder those of its runs, but for what is refused; of
// what is neither none.
void load_plugins_of(const std::string& path);

// The run that a folder is, or whose checkpoint it is.
std::filesystem::path run_of(const std::filesystem::path& path);

// --best, for verbs that take a run.
std::span<const Flag> source_flags();

// The elements of a checkpoint's model; null for names that it lacks. The function has a share of
// the checkpoint.
TensorByName tensors_of(std::shared_ptr<const Checkpoint> checkpoint);

// The graph of a model or stage file without any pass.
Graph import_graph(const OnnxModel& model, const CompileOptions& options);
// A stage of a run by name ("loss"), number ("6", "06") or both ("06-loss", "06-loss.onnx"); of
// several with the name the last one. Empty: the last stage.
StageRecord find_stage(const std::vector<StageRecord>& stages, const std::string& name);

}  // namespace trainscope
