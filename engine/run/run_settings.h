// What a run depends on, as its checkpoints and its record keep it.
#pragma once

#include <string>
#include <string_view>

#include "engine/core/json.h"
#include "engine/passes/training_options.h"
#include "engine/run/train_request.h"

namespace trainscope {

// Everything that must be the same for a run to go on bit for bit, and under kAboutSettings
// (engine/run/resume.h) what is good to know. `data` is Dataset::description().
Json run_settings(const TrainRequest& request, const Json& data);

// The long form of the options, as --loss takes it:
// "cross_entropy:output=logits,labels=labels,...". Class weights are in it as numbers.
std::string loss_text(const LossOptions& loss);
// Every number that steps depend on.
Json optimizer_json(const OptimizerOptions& optimizer);
// Where a run's record has the hash of the gradients that its user gave, beside the model's facts.
inline constexpr std::string_view kGradientsHash = "gradients_xxh3";
// File, path, hash and size of a model, and the plugins that it is read with.
Json model_facts(const OnnxModel& model);

}  // namespace trainscope
