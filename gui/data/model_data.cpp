// A model as a source: compiled as `train` would without flags, its plan and stages in memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/this_machine.h"
#include "engine/model_loss.h"
#include "engine/model_sizes.h"
#include "engine/record.h"
#include "engine/record_plan.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {
namespace {

// The options of a training step that no flag says anything about.
CompileOptions usual_options(const OnnxModel& model) {
  const Sizes sizes = resolve_sizes(model, {});
  CompileOptions options;
  options.import.dims = sizes.dims;
  options.import.shapes = sizes.shapes;
  resolve_loss_output(model, options.training.loss);
  options.lower.threads = usable_cores();
  options.batch_tiles = BatchTileOptions{};
  options.passes.keep = KeepGraphs::kAll;
  return options;
}

}  // namespace

void RunData::read_model() {
  const std::string train = fmt::format("trainscope train {} --data synthetic", quoted_path());
  set_message(Topic::kMetrics, "a model alone has no steps: train it to see some", train);
  set_message(Topic::kProfile, "a model alone has no times: train it to see some",
              train + " --profile steps=+6:25");
  guarded(Topic::kSource, [this] {
    const OnnxModel model = OnnxModel::read(path_);
    auto compiled = compile(model, usual_options(model));
    stored_plan_.emplace(plan_record(*compiled));
    plan_ = stored_plan_->view();
    const Stages& stages = compiled->stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      stages_.push_back({.label = stages[i].label,
                         .record = stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1])});
    }
    history_.emplace(std::make_unique<StageHistory>(StageHistory::of(std::move(compiled->stages))));
  });
}

}  // namespace trainscope::gui
