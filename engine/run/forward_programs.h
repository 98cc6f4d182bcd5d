// Forward programs of a trained model: for evaluation and for sampling.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/session.h"

namespace trainscope {

// Compiles when asked, once for each mode and sizes; the parameters are the trained ones.
class ForwardPrograms {
 public:
  // The parameters are the checkpoint's if there is one, else the model's own.
  ForwardPrograms(OnnxModel model, std::shared_ptr<const Checkpoint> checkpoint,
                  CompileOptions options, BatchAxes batch_axes = {})
      : model_(std::move(model)),
        checkpoint_(std::move(checkpoint)),
        options_(std::move(options)),
        batch_axes_(std::move(batch_axes)) {}

  const CompileOptions& options() const { return options_; }
  const Compiled& compiled(GraphMode mode) { return *program(mode, options_.import).compiled; }
  Executor& executor(GraphMode mode) { return *program(mode, options_.import).executor; }
  // For another batch size; null when the model fixes its own.
  Executor* executor(GraphMode mode, std::int64_t batch);

 private:
  struct Program {
    GraphMode mode = GraphMode::kEvaluate;
    ImportOptions import;
    std::shared_ptr<const Compiled> compiled;
    std::shared_ptr<Executor> executor;
  };
  Program& program(GraphMode mode, const ImportOptions& import);

  OnnxModel model_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  CompileOptions options_;
  BatchAxes batch_axes_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace trainscope
