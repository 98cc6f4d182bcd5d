// Which panels are seen together: a workspace has some for its main region and some for its strip.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/workbench/panel.h"
#include "gui/workbench/settings.h"

namespace trainscope::gui {

struct Workspace {
  std::string_view id = {};  // "memory"
  std::string_view title = {};
  std::string_view key = {};
  std::vector<const Panel*> main = {};  // the first is shown at first
  std::vector<const Panel*> strip = {};
};

// Those that have a panel for their main region.
std::span<const Workspace> all_workspaces();
bool is_workspace(std::string_view id);
// The layout's, or the first.
const Workspace& workspace_of(const Layout& layout);
const Panel& main_panel_of(const Layout& layout);
const Panel* strip_panel_of(const Layout& layout);  // null: the workspace has no strip

// Of the region that has the keys.
const Panel& panel_in_front(const Layout& layout, std::string_view region);

// Why no workspace shows it in its main region; empty: one does.
std::string fault_of_panel(std::string_view panel);
// Goes to a panel: to the workspace that has it in its main region.
bool show_panel(Layout& layout, std::string_view panel);

}  // namespace trainscope::gui
