// Rows of an inspection, one by one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "gui/views/inspection.h"

namespace trainscope::gui {

class InspectionBuilder {
 public:
  InspectionBuilder(RunData& of, const PlanLinks* its_links) : run(of), links(its_links) {}

  void heading(std::string label) {
    rows.push_back({.kind = InspectionKind::kHeading, .label = std::move(label)});
  }
  void text(std::string label, std::string text) {
    if (text.empty()) return;
    rows.push_back({.label = std::move(label), .text = std::move(text)});
  }
  void note(std::string text) {
    rows.push_back({.kind = InspectionKind::kNote, .text = std::move(text)});
  }
  void number(InspectionKind kind, std::string label, double number, std::string fact = {}) {
    rows.push_back(
        {.kind = kind, .label = std::move(label), .number = number, .fact = std::move(fact)});
  }
  void link(std::string label, std::string name, std::string detail, std::string target) {
    const bool is_wide = label.empty() && !rows.empty() &&
                         (rows.back().kind == InspectionKind::kHeading || rows.back().is_wide);
    rows.push_back({.kind = InspectionKind::kLink,
                    .label = std::move(label),
                    .text = std::move(name),
                    .detail = std::move(detail),
                    .target = std::move(target),
                    .is_wide = is_wide});
  }
  void value_link(std::string label, const PlanValue& value);
  void node_link(std::string label, const PlanNode& node);
  // To nodes of the plan, the first with the label; of many the first.
  void node_links(std::string label, std::span<const std::uint32_t> nodes);
  // Of calls, each once.
  std::vector<std::uint32_t> nodes_of(std::span<const std::uint32_t> calls) const;

  RunData& run;
  const PlanLinks* links;  // null: there is no plan
  std::vector<InspectionRow> rows;
};

// "f32[8,64,128]".
std::string type_of(const PlanView& plan, const PlanValue& value);

void inspect_node(InspectionBuilder& rows, const Selection& selection);
void inspect_value(InspectionBuilder& rows, const Selection& selection);
void inspect_buffer(InspectionBuilder& rows, std::uint32_t buffer);
void inspect_kernel(InspectionBuilder& rows, const std::string& kernel);

}  // namespace trainscope::gui
