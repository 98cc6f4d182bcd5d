// The pipeline without what only makes programs better.
#include "engine/run/numerics/unfused_step.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

// What a step cannot do without, or would be another step.
constexpr std::array<std::string_view, 6> kNeeded = {
    "training_form", "loss", "decompose", "precision", "differentiate", "upcast_gradients"};
constexpr std::array<std::string_view, 2> kNeededForUpdates = {"optimizer_step", "sparse_rows"};

bool is_needed(std::string_view pass, UnfusedEnd end) {
  return std::ranges::find(kNeeded, pass) != kNeeded.end() ||
         (end == UnfusedEnd::kUpdate &&
          std::ranges::find(kNeededForUpdates, pass) != kNeededForUpdates.end());
}

CompileOptions unfused(CompileOptions options, UnfusedEnd end) {
  TrainingOptions& training = options.training;
  training.mode = end == UnfusedEnd::kUpdate ? GraphMode::kTrain : GraphMode::kGradients;
  training.micro_batches = 1;
  training.keep_gradients = true;
  training.keep_outputs = true;
  training.optimizer.in_backward = false;
  options.training.loss_chunks = 1;
  options.training.skip_ignored = false;
  options.training.skip_padding.clear();
  options.passes = {};
  for (const Pass& pass : default_passes()) {
    if (is_needed(pass.name, end)) continue;
    options.passes.disabled.emplace_back(pass.name);
  }
  options.watch = {};
  return options;
}

}  // namespace

UnfusedStep::UnfusedStep(const OnnxModel& model, const CompileOptions& options, UnfusedEnd end)
    : UnfusedStep(build_stages(model, unfused(options, end)), options) {}

UnfusedStep::UnfusedStep(Stages stages, const CompileOptions& options)
    : graph_(stages.back().graph),
      values_(stages, graph_, ViewRows::kTheirOwn),
      evaluate_(evaluator(op_table(), cpu_kernels(),
                          {.kernels = options.lower.kernels, .threads = options.lower.threads})) {
  const ValueId scale = graph_.find(kLossScaleState);
  if (scale == kNoValue) return;
  loss_scale_ = convert(*graph_.value(scale).data, DType::kF64).values<double>()[0];
}

}  // namespace trainscope
