// config: what the options of a verb are and where they come from, and files of them.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/config.h"
#include "cli/flags/invocation.h"
#include "cli/flags/toml_file.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kConfigFlags[] = {
    {.name = "origin", .type = FlagType::kSwitch, .help = "Of show: where each value comes from"},
};

constexpr Argument kAction = {
    .name = "ACTION", .help = "show, validate or schema", .words = "show|validate|schema"};

Json option_facts(const Settings::Setting& setting) {
  Json json = Json::object({{"name", setting.flag.name}});
  if (!setting.texts.empty()) json.set("value", json_of(setting));
  json.set("origin", name_of(setting.origin));
  if (!setting.where.empty()) json.set("where", setting.where);
  return json;
}

std::string option_line(const Settings::Setting& setting, bool with_origin) {
  const bool is_set = !setting.texts.empty();
  std::string text = is_set
                         ? fmt::format("{} = {}", setting.flag.name, toml_value(json_of(setting)))
                         : fmt::format("# {} is not set", setting.flag.name);
  if (!with_origin) return text + "\n";
  if (!is_set) return text + "\n";
  return fmt::format("{:<40}  # {}{}{}\n", text, name_of(setting.origin),
                     setting.where.empty() ? "" : " ", setting.where);
}

Outcome show(const Invocation& invocation) {
  const std::string verb(invocation.command().config_table());
  const Command& command = *command_named(verb);
  Json options = Json::array();
  std::string text = fmt::format("# trainscope {}\n", verb);
  for (const Flag& flag : config_flags(command)) {
    const Settings::Setting& setting = invocation.settings().all().find(flag.name)->second;
    options.push_back(option_facts(setting));
    text += option_line(setting, invocation.settings().on("origin"));
  }
  return {.facts = Json::object({{"verb", verb}, {"options", std::move(options)}}),
          .text = std::move(text)};
}

Outcome validate(const Invocation& invocation) {
  const std::vector<std::string>& arguments = invocation.arguments();
  require(!arguments[1].empty(), ErrorCode::kUsage, "config validate needs FILE.toml");
  Outcome outcome;
  Json files = Json::array();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].empty()) continue;
    const Config config = read_config(arguments[i], *command_named("train"));
    files.push_back(Json::object({{"file", arguments[i]}, {"keys", config.key_count}}));
    outcome.text +=
        fmt::format("{}: {} keys, all good\n", printable(arguments[i]), config.key_count);
  }
  outcome.facts.set("files", std::move(files));
  return outcome;
}

Outcome schema(const Invocation& invocation) {
  require(invocation.argument(1).empty(), ErrorCode::kUsage,
          "config schema takes no further argument");
  Json json = config_schema();
  std::string text = json.dump(2) + "\n";
  return {.facts = Json::object({{"schema", std::move(json)}}), .text = std::move(text)};
}

Outcome run_config(const Invocation& invocation) {
  const std::string& action = invocation.argument(0);
  require(action == "show" || !invocation.settings().on("origin"), ErrorCode::kUsage,
          "--origin means nothing with config {}", action);
  if (action == "show") return show(invocation);
  return action == "validate" ? validate(invocation) : schema(invocation);
}

// `config show [VERB] [arguments and flags of VERB]`: without a verb it is train.
Command for_words(const Command& self, std::span<const std::string> words) {
  Command fitting = self;
  if (words.empty() || words[0] != "show") return fitting;
  const bool named = words.size() > 1 && !words[1].starts_with('-');
  const std::string verb = named ? words[1] : "train";
  const Command* command = command_named(verb);
  if (command == nullptr) {
    std::vector<std::string_view> names;
    for (const Command& one : all_commands()) names.push_back(one.name);
    throw Error(ErrorCode::kUsage, fmt::format("there is no verb '{}'", printable(verb)))
        .hint(nearest_hint(verb, names))
        .hint("config show VERB [flags of VERB]");
  }
  fitting.table = command->name;
  if (command->name != self.name) fitting.flags = join_flags({self.flags, command->flags});
  return fitting;
}

}  // namespace

Command config_command() {
  return {.name = "config",
          .summary =
              "Show what options are and come from, check files of them, or give their "
              "schema.",
          .arguments = {kAction,
                        {.name = "VERB|FILE",
                         .help = "of show a verb, then its flags [train]; of validate files",
                         .required = false,
                         .repeated = true}},
          .flags = join_flags({kConfigFlags}),
          .examples = {"trainscope config show train --config run.toml --origin",
                       "trainscope config validate run.toml"},
          .run = run_config,
          .for_words = for_words};
}

}  // namespace trainscope
