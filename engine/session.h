// A compiled model that runs: what engine/run drives, and what compares and inspects models.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"           // IWYU pragma: export
#include "engine/core/tensor.h"       // IWYU pragma: export
#include "engine/exec/executor.h"     // IWYU pragma: export
#include "engine/onnx/export.h"       // IWYU pragma: export
#include "engine/onnx/import.h"       // IWYU pragma: export
#include "engine/onnx/parameters.h"   // IWYU pragma: export
#include "engine/train/checkpoint.h"  // IWYU pragma: export
#include "engine/train/data.h"        // IWYU pragma: export
#include "engine/train/schedule.h"    // IWYU pragma: export
#include "engine/train/trainer.h"     // IWYU pragma: export

namespace trainscope {

// An executor of what was compiled; `parameters` holds the parameters, where there is one.
std::shared_ptr<Executor> make_executor(std::shared_ptr<const Compiled> compiled,
                                        std::shared_ptr<const Executor> parameters = nullptr);

// A model being trained: the training program and its executor, and, made when first asked for,
// programs for evaluation and inference that share its parameters.
class Session {
 public:
  // `options.training.mode` must be kTrain or kGradients; parameters start as the model has them.
  // Throws what compile() throws.
  Session(OnnxModel model, CompileOptions options);

  const OnnxModel& model() const { return model_; }
  const Compiled& compiled() const { return *training_.compiled; }
  const std::shared_ptr<const Compiled>& shared_compiled() const { return training_.compiled; }
  Executor& executor() { return *training_.executor; }
  // ... for whoever may outlive the session.
  const std::shared_ptr<Executor>& shared_executor() const { return training_.executor; }

  // A program of another mode (kEvaluate, kInference), on the training parameters as they are.
  // `import` may bind other sizes. Cached by mode and sizes.
  Executor& executor(GraphMode mode, const ImportOptions& import);
  Executor& executor(GraphMode mode) { return executor(mode, options_.import); }

  // The trained model for inference.
  void export_inference(const FolderEntry& entry);

 private:
  struct Compilation {
    GraphMode mode = GraphMode::kTrain;
    std::map<std::string, std::int64_t> dims;
    std::map<std::string, Ints> shapes;
    std::shared_ptr<const Compiled> compiled;
    std::shared_ptr<Executor> executor;
  };
  Compilation make(GraphMode mode, const ImportOptions& import,
                   const std::shared_ptr<const Executor>& parameters) const;

  OnnxModel model_;
  CompileOptions options_;
  Compilation training_;
  std::vector<Compilation> others_;
};

}  // namespace trainscope
