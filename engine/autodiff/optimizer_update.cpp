// The optimizers' step ops with their states, inputs and scales.
#include "engine/autodiff/optimizer_update.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/autodiff/plugin_step.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "kernels/api/params.h"

namespace trainscope {

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kAdamWHuggingFace:
      return "adamw_hf";
    case OptimizerKind::kLamb:
      return "lamb";
    case OptimizerKind::kRmsProp:
      return "rmsprop";
    case OptimizerKind::kLion:
      return "lion";
    case OptimizerKind::kPlugin:
      return "plugin";
  }
  return "?";
}

Trained trained_parameters(const Graph& graph) {
  Trained trained;
  for (const GradientOf& gradient : graph.gradients) {
    if (graph.value(gradient.of).kind != ValueKind::kParameter) continue;
    trained.parameters.push_back(gradient.of);
    trained.gradients.push_back(gradient.gradient);
  }
  return trained;
}

void check_groups(const Graph& graph, const Trained& trained, const OptimizerOptions& options) {
  for (const ParameterGroup& group : options.groups) {
    bool any = false;
    for (ValueId p : trained.parameters)
      any = any || matches_pattern(graph.value(p).name, group.pattern);
    require(any, ErrorCode::kUsage, "parameter group '{}' matches no trained parameter",
            printable(group.pattern));
  }
}

namespace {

// weight_decay and learning_rate_scale, one entry a parameter.
Attributes per_parameter(const Graph& graph, const Trained& trained,
                         const OptimizerOptions& options) {
  Floats decay;
  Floats scale;
  for (ValueId p : trained.parameters) {
    const Value& value = graph.value(p);
    bool exempt = options.decay_matrices_only && value.type.shape.rank < 2;
    const double own_decay = exempt ? 0.0 : options.weight_decay;
    decay.push_back(own_decay);
    scale.push_back(1.0);
    for (const ParameterGroup& group : options.groups) {
      if (!matches_pattern(value.name, group.pattern)) continue;
      decay.back() = group.weight_decay.value_or(own_decay);
      scale.back() = group.learning_rate_scale;
    }
  }
  return {{"weight_decay", decay}, {"learning_rate_scale", scale}};
}

// Of the averaged gradients, as the graph has them.
ValueId global_norm(Builder& b, const Trained& trained, const TrainingOptions& options) {
  return b("GlobalNorm", trained.gradients,
           {{"divisor", static_cast<double>(options.all_micro_batches())}});
}

// v without the factor of loss scaling, if there is one.
ValueId unscaled(Builder& b, ValueId v) {
  const ValueId scale = b.graph().find(kLossScaleState);
  return scale == kNoValue ? v : b("Div", {v, scale});
}

// What every gradient is multiplied by: 1 / micro-batches, and the clip factor.
ValueId gradient_scale(Builder& b, const Trained& trained, const TrainingOptions& options) {
  auto divisor = static_cast<double>(options.all_micro_batches());
  DType dtype = b.type(trained.gradients.front()).dtype;
  if (options.optimizer.clip_norm <= 0.0) return unscaled(b, b.scalar(1.0 / divisor, dtype));
  ValueId norm = unscaled(b, global_norm(b, trained, options));
  b.graph().rename(norm, b.graph().unique_name(kGradientNormOutput));
  b.graph().outputs.push_back(norm);
  return unscaled(b, b("GradientScale", {norm},
                       {{"max_norm", options.optimizer.clip_norm}, {"divisor", divisor}}));
}

void append_states(Builder& b, const Trained& trained, std::string_view prefix,
                   std::vector<ValueId>& states) {
  for (ValueId p : trained.parameters) {
    std::string name = fmt::format("ai.trainscope.{}/{}", prefix, b.graph().value(p).name);
    states.push_back(b.state(name, b.type(p), nullptr));
  }
}

std::int64_t adam_mode(OptimizerKind kind) {
  if (kind == OptimizerKind::kAdam) return static_cast<std::int64_t>(AdamMode::kAdam);
  return static_cast<std::int64_t>(kind == OptimizerKind::kAdamWHuggingFace
                                       ? AdamMode::kHuggingFaceAdamW
                                       : AdamMode::kTorchAdamW);
}

// What the step keeps between steps.
struct Step {
  std::string_view op;
  std::vector<std::string> states;  // prefixes of their names
};

Step rmsprop_step(const OptimizerOptions& optimizer, Attributes& attributes) {
  attributes.set("alpha", optimizer.beta2);
  attributes.set("epsilon", optimizer.epsilon);
  attributes.set("momentum", optimizer.momentum);
  attributes.set("centered", std::int64_t{optimizer.centered ? 1 : 0});
  Step step{.op = "RmsPropStep", .states = {"rmsprop.square"}};
  if (optimizer.centered) step.states.emplace_back("rmsprop.mean");
  if (optimizer.momentum > 0.0) step.states.emplace_back("rmsprop.momentum");
  return step;
}

Step lion_step(const OptimizerOptions& optimizer, Attributes& attributes) {
  attributes.set("beta1", optimizer.beta1);
  attributes.set("beta2", optimizer.beta2);
  return {.op = "LionStep", .states = {"lion.m"}};
}

Step describe_step(const OptimizerOptions& optimizer, Attributes& attributes) {
  if (optimizer.kind == OptimizerKind::kRmsProp) return rmsprop_step(optimizer, attributes);
  if (optimizer.kind == OptimizerKind::kLion) return lion_step(optimizer, attributes);
  if (optimizer.kind == OptimizerKind::kSgd) {
    attributes.set("momentum", optimizer.momentum);
    if (optimizer.nesterov) attributes.set("nesterov", std::int64_t{1});
    if (optimizer.momentum == 0.0) return {.op = "SgdStep", .states = {}};
    return {.op = "SgdStep", .states = {"sgd.momentum"}};
  }
  attributes.set("beta1", optimizer.beta1);
  attributes.set("beta2", optimizer.beta2);
  attributes.set("epsilon", optimizer.epsilon);
  if (!optimizer.bias_correction) attributes.set("bias_correction", std::int64_t{0});
  const std::string name(name_of(optimizer.kind));
  const std::vector<std::string> moments = {name + ".m", name + ".v"};
  if (optimizer.kind == OptimizerKind::kLamb) {
    attributes.set("ratio_min", optimizer.ratio_min);
    if (std::isfinite(optimizer.ratio_max)) attributes.set("ratio_max", optimizer.ratio_max);
    return {.op = "LambStep", .states = moments};
  }
  const std::int64_t mode = adam_mode(optimizer.kind);
  if (mode != 0) attributes.set("mode", mode);
  return {.op = "AdamWStep", .states = moments};
}

// From 1, as the trainer counts. With loss scaling as the steps taken count, and 0 for a step whose
// gradients are not finite: the updates leave it out.
ValueId step_number(Builder& b, const Trained& trained, const TrainingOptions& options) {
  Graph& graph = b.graph();
  const TensorType counter{.dtype = DType::kI64, .shape = {}};
  if (graph.find(kLossScaleState) == kNoValue) return b.input(kStepInput, counter);
  const std::vector<ValueId> states{graph.find(kLossScaleState),
                                    b.state(kGoodStepsState, counter, nullptr),
                                    b.state(kTakenStepsState, counter, nullptr)};
  const std::vector<ValueId> next = b.multi(
      "LossScaleStep", {global_norm(b, trained, options), states[0], states[1], states[2]}, 4);
  for (std::size_t i = 0; i < states.size(); ++i) {
    graph.rename(next[i + 1], graph.unique_name("next/" + graph.value(states[i]).name));
    graph.updates.push_back({states[i], next[i + 1]});
  }
  return next[0];
}

}  // namespace

StepInputs add_step_inputs(Builder& b, const Trained& trained, const TrainingOptions& options) {
  // In this order: inputs have theirs from it.
  const ValueId learning_rate = b.input(kLearningRateInput, {.dtype = DType::kF64, .shape = {}});
  const ValueId scale = gradient_scale(b, trained, options);
  return {.learning_rate = learning_rate,
          .gradient_scale = scale,
          .step = step_number(b, trained, options)};
}

namespace {

// The averages of the parameters follow what the step made of these: average + (1 - decay) * (next
// - average).
void append_averages(Builder& b, const Trained& trained, std::span<const ValueId> next,
                     double decay) {
  Graph& graph = b.graph();
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    const Value& parameter = graph.value(trained.parameters[i]);
    const TensorType type = parameter.type;
    const std::string name = fmt::format("{}{}", kAveragePrefix, parameter.name);
    const ValueId average = b.state(name, type, parameter.data);
    const ValueId share = b.scalar(1.0 - decay, type.dtype);
    const ValueId moved = b("Mul", {b("Sub", {next[i], average}), share});
    const ValueId sum = b("Add", {average, moved});
    graph.rename(sum, graph.unique_name("next/" + graph.value(average).name));
    graph.updates.push_back({average, sum});
  }
}

// A node for each parameter.
void append_plugin_update(Builder& b, const Trained& trained, const StepInputs& common,
                          const TrainingOptions& options) {
  const Attributes numbers = per_parameter(b.graph(), trained, options.optimizer);
  const Floats decay = numbers.numbers("weight_decay");
  const Floats scale = numbers.numbers("learning_rate_scale");
  std::vector<ValueId> next;
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    next.push_back(append_plugin_step(b, options.optimizer, common,
                                      {.parameter = trained.parameters[i],
                                       .gradient = trained.gradients[i],
                                       .weight_decay = decay[i],
                                       .learning_rate_scale = scale[i]}));
  }
  if (options.ema_decay > 0.0) append_averages(b, trained, next, options.ema_decay);
}

}  // namespace

void append_update(Builder& b, const Trained& trained, const StepInputs& common,
                   const TrainingOptions& options) {
  const OptimizerOptions& optimizer = options.optimizer;
  if (optimizer.kind == OptimizerKind::kPlugin) {
    return append_plugin_update(b, trained, common, options);
  }
  Attributes attributes = per_parameter(b.graph(), trained, optimizer);
  const Step step = describe_step(optimizer, attributes);
  std::vector<ValueId> states;
  for (const std::string& prefix : step.states) append_states(b, trained, prefix, states);
  std::vector<ValueId> inputs = trained.parameters;
  inputs.insert(inputs.end(), trained.gradients.begin(), trained.gradients.end());
  inputs.insert(inputs.end(), states.begin(), states.end());
  inputs.push_back(common.learning_rate);
  inputs.push_back(common.gradient_scale);
  inputs.push_back(common.step);
  std::vector<ValueId> updated = trained.parameters;
  updated.insert(updated.end(), states.begin(), states.end());
  std::vector<ValueId> next =
      b.multi(step.op, std::move(inputs), static_cast<int>(updated.size()), std::move(attributes));
  for (std::size_t i = 0; i < updated.size(); ++i) {
    b.graph().rename(next[i], b.graph().unique_name("next/" + b.graph().value(updated[i]).name));
    b.graph().updates.push_back({updated[i], next[i]});
  }
  if (options.ema_decay > 0.0) {
    append_averages(b, trained, std::span(next).first(trained.parameters.size()),
                    options.ema_decay);
  }
}

void release_model_outputs(Graph& graph) {
  std::vector<ValueId> released;
  for (ValueId output : graph.outputs) {
    if (!graph.value(output).name.starts_with(kLossTermPrefix)) released.push_back(output);
  }
  graph.release_outputs(released);
}

void release_gradients(Graph& graph) {
  std::erase_if(graph.gradients, [&graph](const GradientOf& g) {
    return graph.value(g.of).kind == ValueKind::kParameter;
  });
}

}  // namespace trainscope
