// Attributes of optimizer steps, read and checked.
#include "engine/ops/optimizer/optimizer_rules.h"

#include <cstdint>
#include <string_view>

#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

// One entry per parameter; `absent` for all of them without the attribute.
Floats per_parameter(const OpArgs& args, std::string_view name, int count, double absent) {
  const auto n = static_cast<std::size_t>(count);
  Floats values = args.attributes.numbers(name, Floats(n, absent));
  require(values.size() == n, ErrorCode::kBadInput,
          "attribute '{}' has {} entries for {} parameters", name, values.size(), count);
  return values;
}

const std::vector<AttributeSpec> kCommon = {
    {"weight_decay", "one number per parameter (default 0)"},
    {"learning_rate_scale",
     "one number per parameter that multiplies the learning rate (default 1)"}};

}  // namespace

double number_within(const OpArgs& args, std::string_view name, double absent, double end) {
  const double value = args.attributes.number(name, absent);
  require(value >= 0.0 && value < end, ErrorCode::kBadInput,
          "attribute '{}' is {}, expected a number in [0, {})", name, value, end);
  return value;
}

OptimizerParams common_params(const OpArgs& args, int count) {
  OptimizerParams params;
  params.weight_decay = per_parameter(args, "weight_decay", count, 0.0);
  params.learning_rate_scale = per_parameter(args, "learning_rate_scale", count, 1.0);
  return params;
}

std::vector<AttributeSpec> with_common(const std::vector<AttributeSpec>& more) {
  std::vector<AttributeSpec> all = kCommon;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int parameter_count(const OpArgs& args, int groups) {
  const int tensors = args.input_count() - kStepScalars;
  require(tensors >= groups && tensors % groups == 0, ErrorCode::kBadInput,
          "{} inputs are not {} tensors for each parameter and {} scalars", args.input_count(),
          groups, kStepScalars);
  return tensors / groups;
}

Types step_shape(const OpArgs& args, int groups) {
  require_all_present(args);
  const int count = parameter_count(args, groups);
  for (int i = 0; i < count; ++i) {
    require_float(args, i);
    require_dtype(args, i, args.type(0).dtype);
    for (int g = 1; g < groups; ++g) require_same_types(args, i, g * count + i);
  }
  require_step_scalars(args);
  Types outputs;
  for (int g = 0; g < groups; ++g) {
    if (g == 1) continue;
    for (int i = 0; i < count; ++i) outputs.push_back(args.type(g * count + i));
  }
  require(std::ssize(outputs) == args.output_count, ErrorCode::kBadInput,
          "{} outputs asked for, the step has {}", args.output_count, outputs.size());
  return outputs;
}

std::vector<InPlace> step_in_place(const OpArgs& args, int groups) {
  const int count = parameter_count(args, groups);
  std::vector<InPlace> pairs;
  for (int output = 0; output < (groups - 1) * count; ++output) {
    pairs.push_back({.output = output, .input = output < count ? output : output + count});
  }
  return pairs;
}

Cost step_cost(const OpArgs& args, int groups, std::int64_t flops_per_element) {
  std::int64_t elements = 0;
  for (int i = 0; i < parameter_count(args, groups); ++i) {
    add_saturating(elements, args.type(i).elements());
  }
  return with_flops(args, saturating_multiply(flops_per_element, elements));
}

void require_step_scalars(const OpArgs& args) {
  const int first = args.input_count() - kStepScalars;
  for (int i = 0; i < kStepScalars; ++i) require_rank(args, first + i, 0);
  require_float(args, first);
  require_float(args, first + 1);
  require_dtype(args, first + 2, DType::kI64);
}

void require_all_present(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is left out", i);
  }
}

double momentum_of(const OpArgs& args) { return number_within(args, "momentum", 0.0, 1.0); }

OptimizerParams sgd_params_of(const OpArgs& args, int parameters) {
  OptimizerParams params = common_params(args, parameters);
  params.momentum = momentum_of(args);
  params.nesterov = args.attributes.integer("nesterov", 0) != 0;
  require(!params.nesterov || params.momentum > 0.0, ErrorCode::kBadInput,
          "attribute 'nesterov' needs a momentum above 0");
  return params;
}

OptimizerParams moment_params_of(const OpArgs& args, int parameters) {
  OptimizerParams params = common_params(args, parameters);
  params.beta1 = number_within(args, "beta1", 0.9, 1.0);
  params.beta2 = number_within(args, "beta2", 0.999, 1.0);
  params.epsilon = number_within(args, "epsilon", 1e-8, 1e30);
  params.bias_correction = args.attributes.integer("bias_correction", 1) != 0;
  return params;
}

OptimizerParams adamw_params_of(const OpArgs& args, int parameters) {
  OptimizerParams params = moment_params_of(args, parameters);
  const std::int64_t mode = args.attributes.integer("mode", 0);
  require(mode >= 0 && mode <= 2, ErrorCode::kBadInput, "attribute 'mode' is {}, expected 0 to 2",
          mode);
  params.mode = static_cast<AdamMode>(mode);
  return params;
}

std::vector<AttributeSpec> sgd_attributes() {
  return with_common({{"momentum", "in [0, 1), default 0"},
                      {"nesterov", "1: look ahead along the momentum (default 0)"}});
}

std::vector<AttributeSpec> moment_attributes() {
  return with_common({{"beta1", "in [0, 1), default 0.9"},
                      {"beta2", "in [0, 1), default 0.999"},
                      {"epsilon", "default 1e-8"},
                      {"bias_correction", "0: leave out 1 - beta1^t and 1 - beta2^t (default 1)"}});
}

std::vector<AttributeSpec> adamw_attributes() {
  std::vector<AttributeSpec> all = moment_attributes();
  all.push_back({"mode", "0 (default): PyTorch's AdamW; 1: Hugging Face's AdamW; 2: Adam"});
  return all;
}

}  // namespace trainscope
