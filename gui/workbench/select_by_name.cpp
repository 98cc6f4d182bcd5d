// Looks names up in the plan and the stages.
#include "gui/workbench/select_by_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gui/views/inspection_stage.h"
#include "gui/views/model_nodes.h"
#include "gui/views/past_nodes.h"

namespace trainscope::gui {
namespace {

constexpr std::string_view kNodeOfStage = "node@";

std::optional<std::uint32_t> row_number(std::string_view text, std::size_t rows) {
  std::uint32_t row = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
  if (error != std::errc() || end != text.data() + text.size() || row >= rows) return std::nullopt;
  return row;
}

std::optional<Selection> node_named(std::string_view name, const Selection& from,
                                    const PlanLinks& links) {
  const std::uint32_t node = links.node_named(name);
  if (node == kNoRow) return std::nullopt;
  return select_node(links, from, links.plan().nodes[node].serial);
}

std::optional<Selection> value_named(std::string_view name, const Selection& from,
                                     const PlanLinks& links) {
  const PlanView& plan = links.plan();
  for (const PlanValue& value : plan.values) {
    if (value.serial != 0 && plan.text(value.name) == name) {
      return select_value(links, from, value.serial);
    }
  }
  return std::nullopt;
}

std::optional<Selection> kernel_named(std::string_view name, Selection from,
                                      const PlanLinks& links) {
  Selection found = select_kernel(links, std::move(from), name);
  if (found.subject != Subject::kKernel) return std::nullopt;
  return found;
}

std::optional<Selection> stage_named(std::string_view name, Selection from, const RunData& run) {
  for (std::size_t i = 0; i < run.stages().size(); ++i) {
    const StageFacts& stage = run.stages()[i];
    if (stage.label != name && stage.record.name != name) continue;
    from.stage = static_cast<std::int32_t>(i);
    return from;
  }
  return std::nullopt;
}

std::optional<Selection> model_node_named(std::string_view name, const Selection& from,
                                          RunData& run) {
  Selection found = select_model_node(run, from, name);
  if (found.subject != Subject::kModelNode) return std::nullopt;
  return found;
}

// A node of the plan, or one that a pass took away, by its name in a stage.
std::optional<Selection> node_in_stage(std::string_view label, std::string_view name,
                                       const Selection& from, RunData& run,
                                       const PlanLinks* links) {
  const auto stage = std::ranges::find(run.stages(), label, &StageFacts::label);
  if (stage == run.stages().end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(stage - run.stages().begin());
  Selection found = select_stage_node(run, from, place, name, links);
  if (found.subject != Subject::kNode) return std::nullopt;
  const bool is_planned = links != nullptr && links->node_of_serial(found.node) != kNoRow;
  return is_planned ? found : select_unplanned_node(run, found, found.node);
}

std::optional<Selection> in_plan(std::string_view kind, std::string_view name,
                                 const Selection& from, const PlanLinks& links) {
  if (kind == "node") return node_named(name, from, links);
  if (kind == "value" || kind == "tensor") return value_named(name, from, links);
  if (kind == "kernel") return kernel_named(name, from, links);
  if (kind == "call") {
    const auto call = row_number(name, links.plan().calls.size());
    if (call) return select_call(links, from, *call);
  }
  if (kind == "buffer") {
    const auto buffer = row_number(name, links.plan().buffers.size());
    if (buffer) return select_buffer(links, from, *buffer);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Selection> selection_named(std::string_view text, Selection from, RunData& run,
                                         const PlanLinks* links) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view kind = text.substr(0, colon);
    const std::string_view name = text.substr(colon + 1);
    if (kind == "stage") return stage_named(name, from, run);
    if (kind == "model") return model_node_named(name, from, run);
    if (kind.starts_with(kNodeOfStage)) {
      return node_in_stage(kind.substr(kNodeOfStage.size()), name, from, run, links);
    }
    if (kind == "step") {
      const auto step = row_number(name, kNoRow);
      if (!step) return std::nullopt;
      from.step = *step;
      return from;
    }
    if (links != nullptr) {
      if (auto found = in_plan(kind, name, from, *links)) return found;
    }
    if (kind == "node") return model_node_named(name, from, run);
  }
  if (links != nullptr) {
    for (const std::string_view kind : {"node", "value", "kernel"}) {
      if (auto found = in_plan(kind, text, from, *links)) return found;
    }
  }
  if (auto found = stage_named(text, from, run)) return found;
  return model_node_named(text, from, run);
}

std::string name_of_selection(const Selection& selection, const PlanLinks* links) {
  if (selection.subject == Subject::kModelNode) return "model:" + selection.model_node;
  if (selection.subject == Subject::kNode && !selection.stage_node.empty()) {
    return fmt::format("{}{}", kNodeOfStage, selection.stage_node);
  }
  const PlanView* plan = links == nullptr ? nullptr : &links->plan();
  switch (plan == nullptr ? Subject::kNothing : selection.subject) {
    case Subject::kKernel:
      return "kernel:" + selection.kernel;
    case Subject::kValue: {
      const std::uint32_t value = links->value_of_serial(selection.value);
      if (value == kNoRow) return {};
      return fmt::format("value:{}", plan->text(plan->values[value].name));
    }
    case Subject::kNode: {
      const std::uint32_t node = links->node_of_serial(selection.node);
      if (node == kNoRow) return {};
      return fmt::format("node:{}", plan->text(plan->nodes[node].name));
    }
    case Subject::kCall:
      return fmt::format("call:{}", selection.call);
    case Subject::kBuffer:
      return fmt::format("buffer:{}", selection.buffer);
    case Subject::kModelNode:
    case Subject::kNothing:
      break;
  }
  return selection.step == 0 ? std::string() : fmt::format("step:{}", selection.step);
}

}  // namespace trainscope::gui
