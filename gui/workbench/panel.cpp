// Tables as text for other programs, and the keys of panels.
#include "gui/workbench/panel.h"

#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

std::string plain(const std::string& text, char separator) {
  std::string result;
  for (const char c : text) {
    const bool breaks = c == '\n' || c == '\r' || c == '\t';
    if (c == '|' && separator == '|') result += '\\';
    result += breaks ? ' ' : c;
  }
  return result;
}

}  // namespace

void take_panel_keys(Ui& ui, Workbench& workbench, std::span<const AppCommand> commands) {
  if (!ui.region_has_keys()) return;
  for (const AppCommand& command : commands) {
    if (command.panel_key.empty() || (command.enabled && !command.enabled(workbench))) continue;
    if (ui.take(command.panel_key)) return command.run(workbench);
  }
}

std::string tsv_of(const CopiedTable& table) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += '\t';
      text += plain(cells[i], '\t');
    }
    text += '\n';
  };
  add(table.head);
  for (const std::vector<std::string>& row : table.rows) add(row);
  return text;
}

std::string markdown_of(const CopiedTable& table) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& cells) {
    text += '|';
    for (const std::string& cell : cells) text += " " + plain(cell, '|') + " |";
    text += '\n';
  };
  add(table.head);
  text += '|';
  for (std::size_t i = 0; i < table.head.size(); ++i) text += i == 0 ? "---|" : "---:|";
  text += '\n';
  for (const std::vector<std::string>& row : table.rows) add(row);
  return text;
}

}  // namespace trainscope::gui
