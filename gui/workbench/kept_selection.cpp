// Finds nodes by what they stem from, and values by what makes them.
#include "gui/workbench/kept_selection.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "gui/views/model_nodes.h"

namespace trainscope::gui {
namespace {

std::string_view source_of(const PlanView& plan, const PlanNode& node) {
  const auto sources = rows_of(plan.names, node.sources);
  return sources.empty() ? std::string_view() : plan.text(sources.front());
}

bool is_alike(const PlanView& plan, const PlanNode& node, const KeptNode& kept) {
  return node.phase == kept.phase && plan.text(node.op) == kept.op &&
         source_of(plan, node) == kept.source;
}

KeptNode kept_node(const PlanView& plan, std::uint32_t row) {
  const PlanNode& node = plan.nodes[row];
  KeptNode kept{.source = std::string(source_of(plan, node)),
                .name = std::string(plan.text(node.name)),
                .op = std::string(plan.text(node.op)),
                .phase = node.phase};
  for (std::uint32_t i = 0; i < row; ++i) {
    kept.position += is_alike(plan, plan.nodes[i], kept) ? 1 : 0;
  }
  return kept;
}

std::uint32_t node_again(const PlanView& plan, const KeptNode& kept) {
  std::size_t before = 0;
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (!is_alike(plan, plan.nodes[i], kept)) continue;
    const bool is_same = kept.source.empty() ? plan.text(plan.nodes[i].name) == kept.name
                                             : before++ == kept.position;
    if (is_same) return i;
  }
  return kNoRow;
}

KeptSelection kept_value(const PlanView& plan, std::uint32_t row) {
  const PlanValue& value = plan.values[row];
  KeptSelection kept{.subject = Subject::kValue, .name = std::string(plan.text(value.name))};
  if (value.producer == kNoRow) return kept;
  kept.is_made = true;
  kept.node = kept_node(plan, value.producer);
  for (std::uint32_t i = 0; i < row; ++i) {
    kept.position += plan.values[i].producer == value.producer ? 1 : 0;
  }
  return kept;
}

std::uint32_t value_again(const PlanView& plan, const KeptSelection& kept) {
  const std::uint32_t producer = kept.is_made ? node_again(plan, kept.node) : kNoRow;
  if (kept.is_made && producer == kNoRow) return kNoRow;
  std::size_t before = 0;
  for (std::uint32_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& value = plan.values[i];
    if (value.producer != producer) continue;
    const bool is_same =
        kept.is_made ? before++ == kept.position : plan.text(value.name) == kept.name;
    if (is_same && value.serial != 0) return i;
  }
  return kNoRow;
}

KeptSelection kept_thing(const Selection& selection, const PlanLinks& links) {
  if (selection.subject == Subject::kKernel) {
    return {.subject = Subject::kKernel, .name = selection.kernel};
  }
  if (selection.subject == Subject::kValue) {
    const std::uint32_t value = links.value_of_serial(selection.value);
    return value == kNoRow ? KeptSelection() : kept_value(links.plan(), value);
  }
  if (selection.subject != Subject::kNode && selection.subject != Subject::kCall) return {};
  const std::uint32_t node = links.node_of_serial(selection.node);
  if (node == kNoRow) return {};
  return {.subject = Subject::kNode, .node = kept_node(links.plan(), node)};
}

Selection thing_again(const KeptSelection& kept, const Selection& from, const PlanLinks& links) {
  const PlanView& plan = links.plan();
  if (kept.subject == Subject::kKernel) return select_kernel(links, from, kept.name);
  if (kept.subject == Subject::kValue) {
    const std::uint32_t value = value_again(plan, kept);
    return value == kNoRow ? from : select_value(links, from, plan.values[value].serial);
  }
  if (kept.subject != Subject::kNode) return from;
  const std::uint32_t node = node_again(plan, kept.node);
  return node == kNoRow ? from : select_node(links, from, plan.nodes[node].serial);
}

}  // namespace

KeptSelection kept_selection(const Selection& selection, const RunData& run,
                             const PlanLinks* links) {
  KeptSelection kept;
  if (selection.subject == Subject::kModelNode) {
    kept = {.subject = Subject::kModelNode, .name = selection.model_node};
  } else if (links != nullptr) {
    kept = kept_thing(selection, *links);
  }
  const auto stage = static_cast<std::size_t>(std::max(0, selection.stage));
  if (selection.stage >= 0 && stage < run.stages().size()) kept.stage = run.stages()[stage].label;
  return kept;
}

Selection selection_again(const KeptSelection& kept, RunData& run, const PlanLinks* links) {
  Selection found;
  const auto stage = std::ranges::find(run.stages(), kept.stage, &StageFacts::label);
  if (stage != run.stages().end()) {
    found.stage = static_cast<std::int32_t>(stage - run.stages().begin());
  }
  if (kept.subject == Subject::kModelNode) return select_model_node(run, found, kept.name);
  return links == nullptr ? found : thing_again(kept, found, *links);
}

}  // namespace trainscope::gui
