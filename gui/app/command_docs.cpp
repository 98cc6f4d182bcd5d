// Rows of the command table as Markdown.
#include "gui/app/command_docs.h"

#include <fmt/format.h>

#include "gui/app/commands.h"

namespace trainscope::gui {

std::string commands_markdown() {
  std::string text = "| command | key | what |\n|---|---|---|\n";
  for (const AppCommand& command : all_commands()) {
    std::string key = command.key.empty() ? "" : fmt::format("`{}`", command.key);
    if (!command.panel_key.empty()) key = fmt::format("`{}` in the panel", command.panel_key);
    text += fmt::format("| `{}` | {} | {} |\n", command.id, key, command.help);
  }
  return text;
}

}  // namespace trainscope::gui
