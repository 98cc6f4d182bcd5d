// Layouts that are kept by name: saved, chosen and deleted by commands, and in a box.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Puts the box over the window.
void open_layouts(Workbench& workbench);

// Why a layout cannot be called so; empty: it can.
std::string fault_of_layout_name(std::string_view name);
void save_layout(Workbench& workbench, std::string_view name);
// False, and a notice, where there is none of this name.
bool show_layout(Workbench& workbench, std::string_view name);
bool delete_layout(Workbench& workbench, std::string_view name);

// A command that is there as long as a layout is kept.
struct LayoutCommand {
  std::string title = {};    // "Layout: wide"
  std::string command = {};  // "layout wide"
  bool is_shown = false;     // the regions lie so now
};
// That choose them, by name.
std::vector<LayoutCommand> commands_that_show(const Workbench& workbench);
// That delete them, by name.
std::vector<LayoutCommand> commands_that_delete(const Workbench& workbench);

}  // namespace trainscope::gui
