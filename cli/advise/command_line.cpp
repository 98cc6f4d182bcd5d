// Words from settings.
#include "cli/advise/command_line.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "engine/bundle/format.h"
#include "engine/core/text.h"

namespace trainscope {

Command train_command();

namespace {

// Flags of every verb that a step depends on; others say how to talk.
constexpr std::array<std::string_view, 5> kOfEveryVerb = {"threads", "seed", "device", "config",
                                                          "set"};

bool is_of_train(std::string_view name) {
  static const std::vector<Flag> kFlags = train_command().flags;
  return std::ranges::find(kFlags, name, &Flag::name) != kFlags.end() ||
         std::ranges::find(kOfEveryVerb, name) != kOfEveryVerb.end();
}

void add_flag(const Flag& flag, const std::vector<std::string>& texts,
              std::vector<std::string>& words) {
  const std::string dashed = "--" + std::string(flag.name);
  if (flag.type == FlagType::kSwitch) {
    if (texts.back() == "on") words.push_back(dashed);
    return;
  }
  if (flag.type == FlagType::kToggle) {
    words.push_back(texts.back() == "on" ? dashed : "--no-" + std::string(flag.name));
    return;
  }
  for (const std::string& text : texts) {
    words.push_back(dashed);
    words.push_back(text);
  }
}

}  // namespace

std::string train_command_line(const Source& source, const Invocation& settled,
                               std::span<const GivenFlag> flags) {
  std::vector<std::string> words = {"trainscope", "train"};
  if (source.is_run()) {
    words.insert(words.end(),
                 {"--config", (source.run().folder().path() / kRunConfigFile).string()});
  } else {
    words.push_back(settled.argument(0));
  }
  for (const auto& [name, setting] : settled.settings().all()) {
    const bool is_changed = std::ranges::find(flags, name, &GivenFlag::name) != flags.end();
    const bool is_said = setting.origin == Origin::kFlag || (name == "data" && !source.is_run());
    if (!is_changed && is_said && is_of_train(name)) add_flag(setting.flag, setting.texts, words);
  }
  for (const GivenFlag& each : flags) {
    add_flag(settled.settings().all().find(each.name)->second.flag, each.texts, words);
  }
  if (!source.is_run()) words.insert(words.end(), {"--steps", "100"});
  return shell_line(words);
}

}  // namespace trainscope
