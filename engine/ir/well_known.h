// Names of the values that training adds to a graph: passes make them, the trainer binds them. And
// the name of what made a model's own nodes.
#pragma once

#include <string_view>

namespace trainscope {

// The pass of their provenance.
inline constexpr const char* kImportPass = "import";

// Scalar graph inputs, beside the labels.
inline constexpr const char* kStepInput = "ai.trainscope.step";  // i64, from 1
// i64: step * micro-batches + micro_step, so that each micro-batch draws numbers of its own.
inline constexpr const char* kRandomStepInput = "ai.trainscope.random_step";
inline constexpr const char* kMicroStepInput = "ai.trainscope.micro_step";        // i64, from 0
inline constexpr const char* kLearningRateInput = "ai.trainscope.learning_rate";  // f64

// States of dynamic loss scaling: what the loss's gradient begins with; steps since it last
// changed and steps that were not left out (i64).
inline constexpr const char* kLossScaleState = "ai.trainscope.loss_scale";
inline constexpr const char* kGoodStepsState = "ai.trainscope.loss_scale.good_steps";
inline constexpr const char* kTakenStepsState = "ai.trainscope.loss_scale.taken_steps";

// The graph output that clipping adds: norm of the averaged gradients.
inline constexpr const char* kGradientNormOutput = "ai.trainscope.gradient_norm";

// Graph outputs of a loss that is a sum: this and the name of a term, without its weight.
inline constexpr const char* kLossTermPrefix = "ai.trainscope.loss/";

// States: everything of ours, and the sums over micro-batches, which do not outlive a step.
inline constexpr const char* kOwnPrefix = "ai.trainscope.";
inline constexpr const char* kAccumulatedPrefix = "ai.trainscope.accumulated/";
// Averages of parameters over the steps: this and the parameter's name.
inline constexpr const char* kAveragePrefix = "ai.trainscope.average/";

// Behind the name of a result that a UserGradient stands between and its readers.
inline constexpr std::string_view kForwardEnding = "/forward";

}  // namespace trainscope
