// Rows of the command table, and how they are run.
#include "gui/app/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "gui/app/command_rows.h"
#include "gui/app/workspaces.h"
#include "gui/panels/panels.h"

namespace trainscope::gui {
namespace {

bool set_theme(Workbench& workbench, std::string_view name) {
  const std::optional<ThemeName> theme = theme_named(name);
  if (theme) workbench.settings.theme = *theme;
  return theme.has_value();
}

bool set_scale(Workbench& workbench, std::string_view text) {
  const std::optional<double> scale = parse_number(text);
  if (!scale || *scale < kLeastScale || *scale > kGreatestScale) return false;
  workbench.settings.scale = static_cast<float>(*scale);
  return true;
}

struct WordCommand {
  std::string_view word;
  bool (*run)(Workbench&, std::string_view);
};
constexpr WordCommand kWordCommands[] = {
    {"open", [](Workbench& w, std::string_view path) { return w.open(path), true; }},
    {"select", [](Workbench& w, std::string_view name) { return w.select_named(name); }},
    {"panel",
     [](Workbench& w, std::string_view name) { return show_panel(w.settings.layout, name); }},
    {"budget", ask_budget},
    {"theme", set_theme},
    {"scale", set_scale},
};

}  // namespace

const std::vector<AppCommand>& all_commands() {
  static const std::vector<AppCommand> commands = [] {
    std::vector<AppCommand> all;
    for (const auto rows : {file_commands(), view_commands(), go_commands(), help_commands()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    for (const Panel& panel : all_panels()) {
      all.insert(all.end(), panel.commands.begin(), panel.commands.end());
    }
    return all;
  }();
  return commands;
}

const AppCommand* command_named(std::string_view id) {
  const auto found = std::ranges::find(all_commands(), id, &AppCommand::id);
  return found == all_commands().end() ? nullptr : &*found;
}

bool is_enabled(const AppCommand& command, const Workbench& workbench) {
  return command.enabled == nullptr || command.enabled(workbench);
}

bool run_command(Workbench& workbench, std::string_view text) {
  const std::string_view line = trim(text);
  const std::size_t blank = line.find(' ');
  if (blank != std::string_view::npos) {
    const std::string_view argument = trim(line.substr(blank));
    for (const WordCommand& command : kWordCommands) {
      if (line.substr(0, blank) != command.word) continue;
      if (command.run(workbench, argument)) return true;
      if (!workbench.notice.is_error) {
        workbench.complain(fmt::format("{}: '{}' is not known", command.word, printable(argument)));
      }
      return false;
    }
  }
  const AppCommand* command = command_named(line);
  if (command == nullptr) {
    workbench.complain(fmt::format("there is no command '{}'", printable(line)));
    return false;
  }
  if (!is_enabled(*command, workbench)) {
    workbench.complain(fmt::format("{}: not now", command->title));
    return false;
  }
  command->run(workbench);
  return true;
}

bool run_chord(Workbench& workbench, const Chord& chord) {
  const std::string name = name_of(chord);
  const auto found = std::ranges::find_if(all_commands(), [&](const AppCommand& command) {
    return command.key == name && is_enabled(command, workbench);
  });
  if (found == all_commands().end()) return false;
  found->run(workbench);
  return true;
}

}  // namespace trainscope::gui
