// The commands of a panel, and those of all panels that fit it: rows of the command table.
#include "gui/app/context_menu.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/app/commands.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr std::string_view kName = "context";
constexpr std::array<std::string_view, 7> kOfAllPanels = {
    "file.copy_tsv",     "file.copy_markdown", "file.copy_command", "file.copy_view",
    "file.copy_picture", "view.maximize",      "help.panel"};

std::vector<const AppCommand*> commands_of(const Panel& panel) {
  std::vector<const AppCommand*> commands;
  for (const AppCommand& command : panel.commands) commands.push_back(&command);
  for (const std::string_view id : kOfAllPanels) commands.push_back(command_named(id));
  return commands;
}

// "Graph: all of it" in the menu of Graph: "All of it".
std::string label_within(const Panel& panel, const AppCommand& command) {
  std::string label(command.title);
  const std::string prefix = std::string(panel.title) + ": ";
  if (!label.starts_with(prefix)) return label;
  label.erase(0, prefix.size());
  if (label.front() >= 'a' && label.front() <= 'z') {
    label.front() = static_cast<char>(label.front() - 'a' + 'A');
  }
  return label;
}

}  // namespace

void draw_context_menu(Ui& ui, Workbench& workbench, const Panel& panel, const Rect& body) {
  UiMemory& memory = ui.memory();
  if (ui.is_pressed_in(body, MouseButton::kRight)) {
    open_menu(ui, kName, ui.input().mouse);
  } else if (workbench.asks_menu && ui.region_has_keys()) {
    open_menu(ui, kName, {body.x + 24.0F, body.y + 8.0F});
    memory.focus = ui.path_of(kName) + "/menu/0";
  }
  const std::string path = ui.path_of(kName);
  if (memory.open_popup != path && memory.chosen_menu != path) return;
  const std::vector<const AppCommand*> commands = commands_of(panel);
  std::vector<MenuItem> items;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const AppCommand& command = *commands[i];
    items.push_back(
        {.label = label_within(panel, command),
         .key = std::string(command.panel_key.empty() ? command.key : command.panel_key),
         .enabled = is_enabled(command, workbench),
         .checked = command.checked != nullptr && command.checked(workbench),
         .line_above = i > 0 && i == panel.commands.size()});
  }
  const int chosen = menu(ui, kName, items);
  if (chosen >= 0) workbench.request(std::string(commands[static_cast<std::size_t>(chosen)]->id));
}

}  // namespace trainscope::gui
