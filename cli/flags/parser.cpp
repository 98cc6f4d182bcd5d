// CLI11 splits the words; this file alone includes it, because that costs seconds of compile time.
#include "cli/flags/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/flags/flag_hint.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

bool takes_value(const Flag& flag) {
  return flag.type != FlagType::kSwitch && flag.type != FlagType::kToggle;
}

std::string help_hint(const Command& command) {
  return fmt::format("`trainscope help {}` lists its flags", command.name);
}

// A flag and where CLI11 puts what it finds.
struct Slot {
  const Flag* flag = nullptr;
  CLI::Option* option = nullptr;
  std::vector<std::string> texts;
};

void declare(CLI::App& app, Slot& slot) {
  const Flag& flag = *slot.flag;
  std::string names = fmt::format("--{}", flag.name);
  if (flag.letter != 0) names += fmt::format(",-{}", flag.letter);
  if (!flag.formerly.empty()) names += fmt::format(",--{}", flag.formerly);
  if (!flag.also.empty()) {
    for (std::string_view other : split(flag.also, '|')) names += fmt::format(",--{}", other);
  }
  if (flag.type == FlagType::kToggle) names += fmt::format(",!--no-{}", flag.name);
  if (takes_value(flag)) {
    slot.option = app.add_option(names, slot.texts)->expected(1)->allow_extra_args(false);
  } else {
    slot.option = app.add_flag(names);
  }
  slot.option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// CLI11 gives "true" and "false" for flags.
void collect(const Slot& slot, ParsedLine& line) {
  if (slot.option->count() == 0) return;
  std::vector<std::string> texts = slot.option->results();
  if (!takes_value(*slot.flag)) texts = {texts.back() == "true" ? "on" : "off"};
  require(texts.size() == 1 || slot.flag->type == FlagType::kTexts, ErrorCode::kUsage,
          "--{} is given {} times", slot.flag->name, texts.size());
  line.flags.push_back({.name = slot.flag->name, .texts = std::move(texts)});
}

[[noreturn]] void unknown_flag(const Command& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  throw Error(ErrorCode::kUsage, fmt::format("{} has no flag '{}'", command.name, printable(name)))
      .hint(flag_hint(join_flags({command.flags, global_flags()}), name))
      .hint(help_hint(command));
}

void check_word(const Argument& argument, std::string_view given) {
  if (argument.words.empty()) return;
  const std::vector<std::string_view> words = split(argument.words, '|');
  if (std::ranges::find(words, given) != words.end()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is '{}': expected {}", argument.name,
                                             printable(given), join(words, ", ")))
      .hint(nearest_hint(given, words));
}

// The flag that a word such as --steps=3 or -o names, if any.
const Flag* find_flag(std::span<const Flag> flags, std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const Flag& flag : flags) {
    if (name.starts_with("--") && flag.is_called(name.substr(2))) return &flag;
    if (flag.letter != 0 && name == fmt::format("-{}", flag.letter)) return &flag;
  }
  return nullptr;
}

bool has_value(std::string_view word) { return word.find('=') != std::string_view::npos; }

// CLI11 takes --quiet=no, and not for what it says.
void check_switches(std::span<const Flag> flags, std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") return;
    const Flag* flag = find_flag(flags, words[i]);
    if (flag != nullptr && takes_value(*flag)) {
      i += has_value(words[i]) ? 0 : 1;
      continue;
    }
    if (flag == nullptr && words[i].starts_with("--no-")) {
      flag = find_flag(flags, "--" + words[i].substr(5));
      if (flag != nullptr && flag->type != FlagType::kToggle) flag = nullptr;
    }
    require(flag == nullptr || !has_value(words[i]), ErrorCode::kUsage,
            "'{}': --{} is a switch and takes no value", printable(words[i]),
            flag == nullptr ? std::string_view() : flag->name);
  }
}

[[noreturn]] void bad_line(const Command& command, std::span<const std::string> words,
                           const CLI::ParseError& error) {
  const std::vector<Flag> flags = join_flags({command.flags, global_flags()});
  const Flag* last = words.empty() ? nullptr : find_flag(flags, words.back());
  if (last != nullptr && takes_value(*last)) {
    throw Error(ErrorCode::kUsage, fmt::format("--{} needs a value: {}", last->name, last->value))
        .hint(help_hint(command));
  }
  throw Error(ErrorCode::kUsage, printable(error.what())).hint(help_hint(command));
}

}  // namespace

ParsedLine parse_line(const Command& command, std::span<const std::string> words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<Flag> flags = join_flags({command.flags, global_flags()});
  check_switches(flags, words);
  std::vector<Slot> slots(flags.size());
  for (std::size_t i = 0; i < flags.size(); ++i) {
    slots[i].flag = &flags[i];
    declare(app, slots[i]);
  }
  ParsedLine line;
  CLI::Option* arguments = app.add_option("ARGUMENTS", line.arguments)->expected(0, 1 << 20);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    bad_line(command, words, error);
  }
  line.arguments = arguments->results();
  for (const std::string& word : app.remaining()) {
    if (word != "--" || !command.takes_dashes()) unknown_flag(command, word);
  }
  for (const Slot& slot : slots) collect(slot, line);
  return line;  // the names of flags are those of the tables and outlive it
}

void check_arguments(const Command& command, std::span<const std::string> given) {
  std::size_t needed = 0;
  for (const Argument& argument : command.arguments) needed += argument.required ? 1 : 0;
  if (given.size() < needed) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} needs {}", command.name, command.arguments[given.size()].name))
        .hint(help_hint(command));
  }
  const std::size_t known = std::min(given.size(), command.arguments.size());
  for (std::size_t i = 0; i < known; ++i) {
    require(!given[i].empty(), ErrorCode::kUsage, "{} is empty", command.arguments[i].name);
    check_word(command.arguments[i], given[i]);
  }
  const bool open = !command.arguments.empty() && command.arguments.back().repeated;
  if (open || given.size() <= command.arguments.size()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} takes no further argument: '{}'", command.name,
                                             printable(given[command.arguments.size()])))
      .hint(help_hint(command));
}

std::size_t verb_position(std::span<const std::string> words) {
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with('-')) {
    const Flag* flag = find_flag(global_flags(), words[i]);
    const bool value_follows = flag != nullptr && takes_value(*flag) && !has_value(words[i]);
    i += value_follows ? 2 : 1;
  }
  return std::min(i, words.size());
}

}  // namespace trainscope
