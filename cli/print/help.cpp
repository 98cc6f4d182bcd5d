// Help texts, made from the tables.
#include "cli/print/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/exit_codes.h"
#include "cli/flags/settings.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kTextColumn = 28;

std::string flag_form(const Flag& flag) {
  std::string form = flag.letter != 0 ? fmt::format("-{}, ", flag.letter) : "    ";
  form += flag.type == FlagType::kToggle ? fmt::format("--[no-]{}", flag.name)
                                         : fmt::format("--{}", flag.name);
  if (!flag.value.empty()) form += fmt::format(" {}", flag.value);
  return form;
}

std::string flag_text(const Flag& flag) {
  std::string text(flag.help);
  if (flag.type == FlagType::kTexts) text += " (may be repeated)";
  if (!flag.also.empty()) text += fmt::format(" (also --{})", join(split(flag.also, '|'), ", --"));
  if (!flag.fallback.empty()) text += fmt::format(" [{}]", flag.fallback);
  return text;
}

// Two columns; a first column that is too long gets a line of its own.
std::string row(std::string_view first, std::string_view second) {
  if (first.size() + 2 > kTextColumn) {
    return fmt::format("  {}\n  {:{}}{}\n", first, "", kTextColumn, second);
  }
  return fmt::format("  {:{}}{}\n", first, kTextColumn, second);
}

std::string flag_rows(std::span<const Flag> flags) {
  std::string text;
  for (const Flag& flag : flags) text += row(flag_form(flag), flag_text(flag));
  return text;
}

std::string_view type_name(FlagType type) {
  switch (type) {
    case FlagType::kSwitch:
      return "switch";
    case FlagType::kToggle:
      return "toggle";
    case FlagType::kText:
      return "text";
    case FlagType::kTexts:
      return "texts";
    case FlagType::kChoice:
      return "choice";
    case FlagType::kInteger:
      return "integer";
    case FlagType::kNumber:
      return "number";
  }
  return "?";
}

Json flag_facts(const Flag& flag) {
  Json json = Json::object({{"name", fmt::format("--{}", flag.name)},
                            {"type", type_name(flag.type)},
                            {"help", flag.help},
                            {"environment", environment_name(flag.name)}});
  if (!flag.value.empty()) json.set("value", flag.value);
  if (!flag.fallback.empty()) json.set("default", flag.fallback);
  if (!flag.also.empty()) json.set("also", Json::list(split(flag.also, '|')));
  return json;
}

}  // namespace

std::string usage(const Command& command) {
  std::string text = fmt::format("trainscope {}", command.name);
  std::string behind;
  for (const Argument& argument : command.arguments) {
    std::string form(argument.name);
    if (argument.repeated) form += "...";
    if (!argument.required) form = fmt::format("[{}]", form);
    (argument.behind_dashes ? behind : text) += (argument.behind_dashes ? " -- " : " ") + form;
  }
  if (!command.flags.empty()) text += " [flags]";
  return text + behind;
}

std::string general_help() {
  std::string text =
      "trainscope trains ONNX graphs and shows what a training step costs.\n\n"
      "usage: trainscope VERB [arguments] [flags]\n\nverbs:\n";
  for (const Command& command : all_commands()) text += row(command.name, command.summary);
  text += "\nflags of every verb:\n" + flag_rows(global_flags());
  text += row("    --help", "Help for the verb: the flags that matter most");
  text += row("    --help-all", "... all of them");
  text +=
      "\nEach flag is also read from the environment (--run-dir from TRAINSCOPE_RUN_DIR) and from "
      "the file\nof --config; the command line wins over both, the environment over the file. "
      "`trainscope help\nexit-codes` lists what the exit codes mean.\n";
  return text;
}

std::string short_help(const Command& command) {
  if (command.essential.empty()) return command_help(command);
  std::string text = fmt::format("{}\n\nusage: {}\n", command.summary, usage(command));
  text += "\narguments:\n";
  for (const Argument& argument : command.arguments) text += row(argument.name, argument.help);
  text += "\nflags that matter most:\n";
  for (std::string_view name : command.essential) {
    const auto flag = std::ranges::find(command.flags, name, &Flag::name);
    text += row(flag_form(*flag), flag_text(*flag));
  }
  text += "\nexamples:\n";
  for (std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  return text + fmt::format("\n`trainscope {} --help-all` explains all of its {} flags.\n",
                            command.name, command.flags.size() + global_flags().size());
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("{}\n\nusage: {}\n", command.summary, usage(command));
  if (!command.arguments.empty()) text += "\narguments:\n";
  for (const Argument& argument : command.arguments) text += row(argument.name, argument.help);
  if (!command.flags.empty()) text += "\nflags:\n" + flag_rows(command.flags);
  text += "\nflags of every verb:\n" + flag_rows(global_flags());
  text += "\nexamples:\n";
  for (std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

std::string exit_codes_help() {
  std::string text = "exit codes:\n";
  for (const ExitCode& code : exit_codes()) {
    text += fmt::format("  {:>3}  {}\n", code.code, code.meaning);
  }
  return text;
}

Json command_facts(const Command& command) {
  Json arguments = Json::array();
  for (const Argument& argument : command.arguments) {
    arguments.push_back(Json::object({{"name", argument.name},
                                      {"help", argument.help},
                                      {"required", argument.required},
                                      {"repeated", argument.repeated},
                                      {"behind_dashes", argument.behind_dashes}}));
  }
  Json flags = Json::array();
  for (const Flag& flag : command.flags) flags.push_back(flag_facts(flag));
  return Json::object({{"name", command.name},
                       {"summary", command.summary},
                       {"arguments", std::move(arguments)},
                       {"flags", std::move(flags)},
                       {"examples", Json::list(command.examples)}});
}

}  // namespace trainscope
