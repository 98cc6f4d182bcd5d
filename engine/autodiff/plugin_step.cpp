// One node of a plugin's op with its states and the numbers that it declares.
#include "engine/autodiff/plugin_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Of the numbers that flags and groups set those that the op knows.
Attributes declared_numbers(const OpDef& op, const OptimizerOptions& optimizer,
                            const UpdatedParameter& updated) {
  const std::array<std::pair<std::string_view, double>, 6> numbers{
      {{"weight_decay", updated.weight_decay},
       {"learning_rate_scale", updated.learning_rate_scale},
       {"momentum", optimizer.momentum},
       {"beta1", optimizer.beta1},
       {"beta2", optimizer.beta2},
       {"epsilon", optimizer.epsilon}}};
  Attributes attributes;
  for (const auto& [name, number] : numbers) {
    const bool declared =
        std::ranges::find(op.attributes, name, &AttributeSpec::name) != op.attributes.end();
    if (declared) attributes.set(std::string(name), number);
  }
  return attributes;
}

}  // namespace

ValueId append_plugin_step(Builder& b, const OptimizerOptions& optimizer, const StepInputs& common,
                           const UpdatedParameter& updated) {
  const PluginStep& step = optimizer.step;
  const OpDef* op = b.ops().find(step.op, step.domain);
  require(op != nullptr, ErrorCode::kUsage, "the optimizer '{}' needs a plugin that is not loaded",
          printable(step.name));
  Graph& graph = b.graph();
  const std::string parameter = graph.value(updated.parameter).name;
  std::vector<ValueId> changed = {updated.parameter};
  for (const std::string& state : step.states) {
    const std::string name = fmt::format("ai.trainscope.{}.{}/{}", step.name, state, parameter);
    changed.push_back(b.state(name, b.type(updated.parameter), nullptr));
  }
  std::vector<ValueId> inputs = {updated.parameter, updated.gradient};
  inputs.insert(inputs.end(), changed.begin() + 1, changed.end());
  inputs.insert(inputs.end(), {common.learning_rate, common.gradient_scale, common.step});
  const std::vector<ValueId> next =
      b.multi(*op, std::move(inputs), std::vector<bool>(changed.size(), true),
              declared_numbers(*op, optimizer, updated));
  for (std::size_t i = 0; i < changed.size(); ++i) {
    require(b.type(next[i]) == b.type(changed[i]), ErrorCode::kBadInput,
            "the step of the optimizer '{}' makes {} of '{}', which is {}", printable(step.name),
            type_text(b.type(next[i])), printable(graph.value(changed[i]).name),
            type_text(b.type(changed[i])));
    graph.rename(next[i], graph.unique_name("next/" + graph.value(changed[i]).name));
    graph.updates.push_back({changed[i], next[i]});
  }
  return next.front();
}

}  // namespace trainscope
