// Source -> history of its stages.
#include "cli/stages.h"

#include <utility>

#include "cli/flags/training_flags.h"

namespace trainscope {

StageHistory stage_history(const Source& source, const Invocation& settled) {
  if (source.is_run()) return StageHistory::of(source.run());
  const OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes(model, size_request(settled.settings()));
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = KeepGraphs::kAll;
  return StageHistory::of(std::move(compile(model, options)->stages));
}

}  // namespace trainscope
