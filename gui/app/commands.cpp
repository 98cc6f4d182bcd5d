// Rows of the command table, and how they are run.
#include "gui/app/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "gui/app/command_rows.h"
#include "gui/app/layouts.h"
#include "gui/app/workspaces.h"
#include "gui/panels/panels.h"

namespace trainscope::gui {
namespace {

std::string not_known(std::string_view argument) {
  return fmt::format("'{}' is not known", printable(argument));
}

std::optional<float> scale_from(std::string_view text) {
  const std::optional<double> scale = parse_number(text);
  if (!scale || *scale < kLeastScale || *scale > kGreatestScale) return std::nullopt;
  return static_cast<float>(*scale);
}

// "PATH", or "PATH --batch 8": a path may have blanks and dashes.
std::pair<std::string, std::string_view> path_and_sizes(std::string_view text) {
  std::error_code ignored;
  const std::size_t flags = text.find(" --");
  const bool is_path = flags == std::string_view::npos || std::filesystem::exists(text, ignored);
  if (is_path) return {std::string(text), {}};
  return {std::string(trim(text.substr(0, flags))), text.substr(flags)};
}

// A command with an argument.
struct WordCommand {
  std::string_view word;
  // What is wrong with the argument whatever is open; null: that is seen when it is run.
  std::string (*fault)(std::string_view);
  bool (*run)(Workbench&, std::string_view);
};
constexpr WordCommand kWordCommands[] = {
    {"open", [](std::string_view text) { return fault_of_sizes(path_and_sizes(text).second); },
     [](Workbench& w, std::string_view text) {
       const auto [path, sizes] = path_and_sizes(text);
       return w.open(path, sizes_from_words(sizes)), true;
     }},
    {"sizes", fault_of_sizes,
     [](Workbench& w, std::string_view words) { return w.compile_with(sizes_from_words(words)); }},
    {"select", nullptr, [](Workbench& w, std::string_view name) { return w.select_named(name); }},
    {"panel", fault_of_panel,
     [](Workbench& w, std::string_view name) { return show_panel(w.settings.layout, name); }},
    {"budget", nullptr, ask_budget},
    {"save_layout", fault_of_layout_name,
     [](Workbench& w, std::string_view name) { return save_layout(w, name), true; }},
    {"layout", nullptr, show_layout},
    {"delete_layout", nullptr, delete_layout},
    {"theme",
     [](std::string_view name) { return theme_named(name) ? std::string() : not_known(name); },
     [](Workbench& w, std::string_view name) {
       return w.settings.theme = *theme_named(name), true;
     }},
    {"scale",
     [](std::string_view text) { return scale_from(text) ? std::string() : not_known(text); },
     [](Workbench& w, std::string_view text) {
       return w.settings.scale = *scale_from(text), true;
     }},
};

// A line's word, and what comes after it.
struct Spoken {
  const WordCommand* command = nullptr;  // null: the line is the id of a row of the table
  std::string_view argument = {};
};

Spoken spoken(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const auto found = std::ranges::find(kWordCommands, line.substr(0, blank), &WordCommand::word);
  if (blank == std::string_view::npos || found == std::end(kWordCommands)) return {};
  return {.command = found, .argument = trim(line.substr(blank))};
}

std::string unknown_command(std::string_view line) {
  std::vector<std::string_view> names;
  for (const AppCommand& command : all_commands()) names.push_back(command.id);
  for (const WordCommand& command : kWordCommands) names.push_back(command.word);
  const std::string hint = nearest_hint(line, std::span<const std::string_view>(names));
  return fmt::format("there is no command '{}'{}{}", printable(line), hint.empty() ? "" : "; ",
                     hint);
}

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

std::string fault_of_sizes(std::string_view words) {
  try {
    sizes_from_words(words);
  } catch (const Error& error) {
    return line_of(error);
  }
  return {};
}

std::string fault_of_command(std::string_view text) {
  const std::string_view line = trim(text);
  const auto [command, argument] = spoken(line);
  if (command == nullptr) {
    return command_named(line) != nullptr ? std::string() : unknown_command(line);
  }
  const std::string fault = command->fault == nullptr ? std::string() : command->fault(argument);
  return fault.empty() ? fault : fmt::format("{}: {}", command->word, fault);
}

bool run_command(Workbench& workbench, std::string_view text) {
  const std::string_view line = trim(text);
  std::string fault = fault_of_command(line);
  if (!fault.empty()) {
    workbench.complain(std::move(fault));
    return false;
  }
  if (const auto [command, argument] = spoken(line); command != nullptr) {
    if (command->run(workbench, argument)) return true;
    if (!workbench.notice.is_error) {
      workbench.complain(fmt::format("{} {}: not now", command->word, printable(argument)));
    }
    return false;
  }
  const AppCommand* command = command_named(line);
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
