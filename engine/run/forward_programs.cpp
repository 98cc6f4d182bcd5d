// Compilation of forward programs, with parameters from the model or a checkpoint.
#include "engine/run/forward_programs.h"

#include "engine/run/evaluation.h"

namespace trainscope {

ForwardPrograms::Program& ForwardPrograms::program(GraphMode mode, const ImportOptions& import) {
  for (const std::unique_ptr<Program>& known : programs_) {
    const bool same = known->mode == mode && known->import.dims == import.dims &&
                      known->import.shapes == import.shapes;
    if (same) return *known;
  }
  CompileOptions options = options_;
  options.import = import;
  options.training.mode = mode;
  auto made = std::make_unique<Program>();
  made->mode = mode;
  made->import = import;
  made->compiled = compile(model_, options);
  made->executor = make_executor(made->compiled);
  made->executor->load_initial();
  if (checkpoint_) {
    const SafetensorsFile& file = checkpoint_->file("model");
    for (const std::string& name : file.names()) {
      if (!made->executor->has(name)) continue;
      made->executor->write(name, trained_tensor(*checkpoint_, name));
    }
  }
  programs_.push_back(std::move(made));
  return *programs_.back();
}

Executor* ForwardPrograms::executor(GraphMode mode, std::int64_t batch) {
  const std::optional<ImportOptions> import =
      with_batch(model_, options_.import, batch, batch_axes_);
  return import ? program(mode, *import).executor.get() : nullptr;
}

}  // namespace trainscope
