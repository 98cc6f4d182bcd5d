// Forward programs of a trained model: for evaluation and for sampling.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/source.h"
#include "engine/session.h"

namespace trainscope {

// Compiles when asked, once for each mode and sizes; the parameters are the trained ones.
class ForwardPrograms {
 public:
  ForwardPrograms(const Source::Trained& trained, CompileOptions options)
      : trained_(trained), options_(std::move(options)) {}

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

  const Source::Trained& trained_;
  CompileOptions options_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace trainscope
