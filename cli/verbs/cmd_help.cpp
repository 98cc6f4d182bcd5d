// help: for the program, one verb, or the exit codes.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/flags/invocation.h"
#include "cli/print/help.h"
#include "cli/print/man.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kExitCodes = "exit-codes";

constexpr Flag kHelpFlags[] = {
    {.name = "man", .type = FlagType::kSwitch, .help = "As a manual page, for man -l"},
};

Outcome exit_codes_outcome() {
  Json list = Json::array();
  for (const ExitCode& code : exit_codes()) {
    list.push_back(
        Json::object({{"code", code.code}, {"name", code.name}, {"meaning", code.meaning}}));
  }
  return {.facts = Json::object({{"exit_codes", std::move(list)}}), .text = exit_codes_help()};
}

Outcome run_help(const Invocation& invocation) {
  const std::string& topic = invocation.argument(0);
  const bool as_man_page = invocation.settings().on("man");
  if (topic == kExitCodes) {
    require(!as_man_page, ErrorCode::kUsage, "every manual page has the exit codes");
    return exit_codes_outcome();
  }
  Outcome outcome;
  if (topic.empty()) {
    Json verbs = Json::array();
    for (const Command& command : all_commands()) verbs.push_back(command_facts(command));
    outcome.facts.set("verbs", std::move(verbs));
    outcome.text = as_man_page ? man_page() : general_help();
    return outcome;
  }
  std::vector<std::string_view> topics = {kExitCodes};
  for (const Command& command : all_commands()) {
    topics.push_back(command.name);
    if (command.name != topic) continue;
    outcome.facts.set("verb", command_facts(command));
    outcome.text = as_man_page ? man_page(command) : command_help(command);
    return outcome;
  }
  throw Error(ErrorCode::kUsage, fmt::format("there is no help on '{}'", printable(topic)))
      .hint(nearest_hint(topic, topics))
      .hint("`trainscope help` lists the verbs");
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .summary = "Explain a verb, or the exit codes.",
          .arguments = {{.name = "VERB", .help = "a verb, or exit-codes", .required = false}},
          .flags = join_flags({kHelpFlags}),
          .examples = {"trainscope help train", "trainscope help exit-codes"},
          .run = run_help};
}

}  // namespace trainscope
