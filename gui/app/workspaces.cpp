// The table of workspaces.
#include "gui/app/workspaces.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"
#include "gui/panels/panels.h"

namespace trainscope::gui {
namespace {

struct Row {
  std::string_view id;
  std::string_view title;
  std::string_view key;
  std::vector<std::string_view> main;
  std::vector<std::string_view> strip;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"graph", "Graph", "F1", {"graph", "stages"}, {"timeline", "memory"}},
      {"memory", "Memory", "F2", {"memory", "budget"}, {"timeline"}},
      {"timeline", "Timeline", "F3", {"timeline"}, {"memory", "kernels"}},
      {"kernels", "Kernels", "F4", {"kernels", "roofline"}, {"timeline"}},
      {"overview", "Overview", "F5", {"overview", "runs"}, {"timeline"}},
  };
  return table;
}

std::vector<const Panel*> known(const std::vector<std::string_view>& names) {
  std::vector<const Panel*> panels;
  for (const std::string_view name : names) {
    if (const Panel* panel = panel_named(name)) panels.push_back(panel);
  }
  return panels;
}

const Panel* chosen_of(const std::map<std::string, std::string>& by_workspace,
                       const std::vector<const Panel*>& panels, std::string_view workspace) {
  if (panels.empty()) return nullptr;
  const auto wanted = by_workspace.find(std::string(workspace));
  if (wanted == by_workspace.end()) return panels[0];
  const auto found = std::ranges::find(panels, wanted->second, &Panel::id);
  return found == panels.end() ? panels[0] : *found;
}

}  // namespace

std::span<const Workspace> all_workspaces() {
  static const std::vector<Workspace> workspaces = [] {
    std::vector<Workspace> made;
    for (const Row& row : rows()) {
      Workspace workspace{.id = row.id,
                          .title = row.title,
                          .key = row.key,
                          .main = known(row.main),
                          .strip = known(row.strip)};
      if (!workspace.main.empty()) made.push_back(std::move(workspace));
    }
    return made;
  }();
  return workspaces;
}

bool is_workspace(std::string_view id) {
  return std::ranges::find(all_workspaces(), id, &Workspace::id) != all_workspaces().end();
}

const Workspace& workspace_of(const Layout& layout) {
  const std::span<const Workspace> workspaces = all_workspaces();
  const auto found = std::ranges::find(workspaces, layout.workspace, &Workspace::id);
  return found == workspaces.end() ? workspaces[0] : *found;
}

const Panel& main_panel_of(const Layout& layout) {
  const Workspace& workspace = workspace_of(layout);
  return *chosen_of(layout.main_panels, workspace.main, workspace.id);
}

const Panel* strip_panel_of(const Layout& layout) {
  const Workspace& workspace = workspace_of(layout);
  return chosen_of(layout.strip_panels, workspace.strip, workspace.id);
}

const Panel& panel_in_front(const Layout& layout, std::string_view region) {
  const Panel* strip = strip_panel_of(layout);
  if (region == "strip" && strip != nullptr) return *strip;
  const Panel* own = panel_named(region);
  return own != nullptr ? *own : main_panel_of(layout);
}

std::string fault_of_panel(std::string_view panel) {
  std::vector<std::string_view> names;
  for (const Workspace& workspace : all_workspaces()) {
    for (const Panel* each : workspace.main) names.push_back(each->id);
  }
  if (std::ranges::find(names, panel) != names.end()) return {};
  return fmt::format("there is no panel '{}': there are {}", printable(panel),
                     join(std::span<const std::string_view>(names), ", "));
}

bool show_panel(Layout& layout, std::string_view panel) {
  for (const Workspace& workspace : all_workspaces()) {
    if (std::ranges::find(workspace.main, panel, &Panel::id) == workspace.main.end()) continue;
    layout.workspace = workspace.id;
    layout.main_panels[std::string(workspace.id)] = panel;
    return true;
  }
  return false;
}

}  // namespace trainscope::gui
