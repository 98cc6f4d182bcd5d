// Finds the verb, reads its flags, runs it, and words its errors.
#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/exit_codes.h"
#include "cli/flags/config.h"
#include "cli/flags/invocation.h"
#include "cli/flags/parser.h"
#include "cli/print/help.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"
#include "engine/plugin/plugin.h"

namespace trainscope {
namespace {

constexpr std::int64_t kSchemaVersion = 1;

const Command& find_command(const std::string& verb) {
  if (const Command* command = command_named(verb)) return *command;
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) names.push_back(command.name);
  throw Error(ErrorCode::kUsage, fmt::format("there is no verb '{}'", printable(verb)))
      .hint(nearest_hint(verb, names))
      .hint("`trainscope help` lists the verbs");
}

bool asks_for_help(std::span<const std::string> words) {
  return std::ranges::any_of(words,
                             [](const std::string& w) { return w == "--help" || w == "-h"; });
}

bool asks_for_all_help(std::span<const std::string> words) {
  return std::ranges::find(words, "--help-all") != words.end();
}

// Without those behind a "--" that are arguments of the verb.
std::span<const std::string> own_words(const Command& command, std::span<const std::string> words) {
  if (!command.takes_dashes()) return words;
  const auto dashes = std::ranges::find(words, "--");
  return words.first(static_cast<std::size_t>(dashes - words.begin()));
}

// The model that a configuration file names stands for the first argument.
void add_model(const Command& command, const std::optional<Config>& config,
               std::vector<std::string>& arguments) {
  const bool wanted = arguments.empty() && takes_model(command);
  if (wanted && config && config->model) arguments = config->model->texts;
}

ProgramResult run_command(const Command& command, std::span<const std::string> rest,
                          std::span<const std::string> words, const Environment& environment) {
  ParsedLine line = parse_line(command, rest);
  apply_sets(command, line);
  const std::optional<Config> config = given_config(command, line, environment);
  add_model(command, config, line.arguments);
  check_arguments(command, line.arguments);
  const std::vector<FileValue> no_file;
  const Invocation invocation(
      command, Settings(command, line.flags, environment, config ? config->values : no_file),
      std::move(line.arguments), {words.begin(), words.end()});
  for (const std::string& file : invocation.settings().texts("plugin")) load_plugin(file);
  check_device(invocation.settings());
  Outcome outcome = command.run(invocation);
  if (outcome.told) return {.text = {}, .exit_code = outcome.exit_code};
  if (!invocation.json()) return {.text = std::move(outcome.text), .exit_code = outcome.exit_code};
  Json object = Json::object({{"schema_version", kSchemaVersion}, {"command", command.name}});
  for (const JsonMember& member : outcome.facts.as_object()) object.set(member.key, member.value);
  return {.text = object.dump() + "\n", .exit_code = outcome.exit_code};
}

}  // namespace

ProgramResult run_program(std::span<const std::string> words, const Environment& environment) {
  const std::size_t position = verb_position(words);
  if (position == words.size()) {
    if (asks_for_help(words) || asks_for_all_help(words)) {
      return {.text = general_help(), .exit_code = 0};
    }
    if (std::ranges::find(words, "--version") != words.end()) {
      return run_command(find_command("version"), {}, words, environment);
    }
    if (words.empty()) return {.text = general_help(), .exit_code = 0};
    throw Error(ErrorCode::kUsage, "which verb?").hint("`trainscope help` lists the verbs");
  }
  const Command& command = find_command(words[position]);
  std::vector<std::string> rest(words.begin(), words.end());
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(position));
  const std::span<const std::string> own = own_words(command, rest);
  if (asks_for_all_help(own)) return {.text = command_help(command), .exit_code = 0};
  if (asks_for_help(own)) return {.text = short_help(command), .exit_code = 0};
  if (command.for_words == nullptr) return run_command(command, rest, words, environment);
  const Command fitting = command.for_words(command, rest);
  return run_command(fitting, rest, words, environment);
}

std::string error_text(const Error& error, bool color) {
  std::string text = fmt::format("{}error:{} {}\n", color ? "\033[1;31m" : "",
                                 color ? "\033[0m" : "", error.message());
  for (const std::string& where : error.context()) text += fmt::format("  at: {}\n", where);
  if (!error.hint().empty()) text += fmt::format("  try: {}\n", error.hint());
  return text;
}

std::string error_json(const Error& error) {
  const int code = static_cast<int>(error.code());
  Json json = Json::object({{"code", code},
                            {"name", exit_code_name(code)},
                            {"message", error.message()},
                            {"where", Json::list(error.context())},
                            {"hint", error.hint()}});
  return Json::object({{"schema_version", kSchemaVersion}, {"error", std::move(json)}}).dump() +
         "\n";
}

std::string error_log_line(const Error& error) {
  const int code = static_cast<int>(error.code());
  return Json::object({{"time", utc_timestamp()},
                       {"level", name_of(LogLevel::kError)},
                       {"message", error.message()},
                       {"code", code},
                       {"where", Json::list(error.context())},
                       {"hint", error.hint()}})
             .dump() +
         "\n";
}

ErrorStyle error_style(std::span<const std::string> words, const Environment& environment,
                       bool terminal) {
  const auto has = [&words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  const auto variable = [&environment](const char* flag) {
    return environment(environment_name(flag)).value_or("");
  };
  // The value of a flag before the line is parsed.
  const auto value = [&](const std::string& flag) {
    std::string text = variable(flag.c_str());
    const std::string dashed = "--" + flag;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].starts_with(dashed + "=")) text = words[i].substr(dashed.size() + 1);
      if (words[i] == dashed && i + 1 < words.size()) text = words[i + 1];
    }
    return text;
  };
  const std::string color = value("color");
  const bool wanted = terminal && environment("NO_COLOR").value_or("").empty();
  const std::string json = variable("json");
  return {.json = has("--json") || json == "1" || json == "true" || json == "on",
          .color = color == "always" || (wanted && color != "never"),
          .log_json = value("log-format") == "json"};
}

}  // namespace trainscope
