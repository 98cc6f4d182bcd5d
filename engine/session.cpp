// Sessions: one training program, and evaluation programs on the same parameters.
#include "engine/session.h"

#include "engine/core/error.h"

namespace trainscope {

std::shared_ptr<Executor> make_executor(std::shared_ptr<const Compiled> compiled,
                                        std::shared_ptr<const Executor> parameters) {
  const Program* program = &compiled->program;
  return std::make_shared<Executor>(std::shared_ptr<const Program>(std::move(compiled), program),
                                    std::move(parameters));
}

Session::Session(OnnxModel model, CompileOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  training_ = make(options_.training.mode, options_.import, nullptr);
  training_.executor->load_initial();
}

Session::Compilation Session::make(GraphMode mode, const ImportOptions& import,
                                   const std::shared_ptr<const Executor>& parameters) const {
  CompileOptions options = options_;
  options.import = import;
  options.training.mode = mode;
  if (parameters != nullptr) options.recompute = {};  // nothing to save without a backward phase
  options.lower.external_parameters = parameters != nullptr;
  Compilation made;
  made.mode = mode;
  made.dims = import.dims;
  made.shapes = import.shapes;
  made.compiled = compile(model_, options);
  made.executor = make_executor(made.compiled, parameters);
  return made;
}

Executor& Session::executor(GraphMode mode, const ImportOptions& import) {
  for (const Compilation& other : others_) {
    bool same = other.mode == mode && other.dims == import.dims && other.shapes == import.shapes;
    if (same) return *other.executor;
  }
  others_.push_back(make(mode, import, training_.executor));
  others_.back().executor->load_initial();  // constants: its parameters are elsewhere
  return *others_.back().executor;
}

void Session::export_inference(const FolderEntry& entry) {
  InferenceOptions options;
  options.tensor = [this](std::string_view name) -> SharedTensor {
    const Executor& executor = *training_.executor;
    ValueId id = executor.program().graph.find(name);
    if (id == kNoValue) return nullptr;
    ValueKind kind = executor.program().graph.value(id).kind;
    if (kind != ValueKind::kParameter && kind != ValueKind::kState) return nullptr;
    return std::make_shared<const Tensor>(executor.read(name));
  };
  trainscope::export_inference(model_, entry, options);
}

}  // namespace trainscope
