// Source -> stages of its model, their history.
#include "cli/stages.h"

#include <utility>

#include "cli/flags/training_flags.h"

namespace trainscope {

Stages compiled_stages(const Source& source, const Invocation& settled) {
  const OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes(model, size_request(settled.settings()));
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = KeepGraphs::kAll;
  return std::move(compile(model, options)->stages);
}

StageHistory stage_history(const Source& source, const Invocation& settled) {
  if (source.is_run()) return StageHistory::of(source.run());
  return StageHistory::of(compiled_stages(source, settled));
}

}  // namespace trainscope
