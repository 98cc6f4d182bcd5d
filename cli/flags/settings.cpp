// Flag values: conversion, checks, precedence default < file < environment < flag.
#include "cli/flags/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string number_text(double value) {
  if (std::fabs(value) >= 1e15) return fmt::format("{}", value);
  return std::floor(value) == value ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

std::string range_text(const Flag& flag) {
  const std::string_view kind = flag.type == FlagType::kInteger ? "a whole number" : "a number";
  const bool from = std::isfinite(flag.minimum);
  const bool to = std::isfinite(flag.maximum);
  if (from && to) {
    return fmt::format("{} from {} to {}", kind, number_text(flag.minimum),
                       number_text(flag.maximum));
  }
  if (from) return fmt::format("{} of {} or more", kind, number_text(flag.minimum));
  if (to) return fmt::format("{} of at most {}", kind, number_text(flag.maximum));
  return std::string(kind);
}

bool is_number_of(const Flag& flag, std::string_view text) {
  std::optional<double> value = parse_number(text);
  if (flag.type == FlagType::kInteger) {
    const std::optional<std::int64_t> whole = parse_int(text);
    value = whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  return value && *value >= flag.minimum && *value <= flag.maximum;
}

bool is_choice_of(const Flag& flag, std::string_view text) {
  const std::vector<std::string_view> words = split(flag.value, '|');
  return std::ranges::find(words, text) != words.end();
}

bool takes(const Flag& flag, std::string_view text) {
  switch (flag.type) {
    case FlagType::kInteger:
    case FlagType::kNumber:
      return is_number_of(flag, text);
    case FlagType::kChoice:
      return is_choice_of(flag, text) || (flag.open && text.find('.') != std::string_view::npos);
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return text == "on" || text == "off";
    case FlagType::kText:
    case FlagType::kTexts:
      return !text.empty();
  }
  return false;
}

// The words of a recorded option.
std::vector<std::string> recorded_texts(const Json& value) {
  std::vector<std::string> texts;
  if (value.is_array()) {
    for (const Json& item : value.as_array()) texts.push_back(item.as_string());
  } else if (value.is_bool()) {
    texts.emplace_back(value.as_bool() ? "on" : "off");
  } else {
    texts.push_back(value.is_string() ? value.as_string() : value.dump());
  }
  return texts;
}

bool is_switch(const Flag& flag) {
  return flag.type == FlagType::kSwitch || flag.type == FlagType::kToggle;
}

std::vector<std::string> default_texts(const Flag& flag) {
  if (!flag.fallback.empty()) return {std::string(flag.fallback)};
  if (is_switch(flag)) return {"off"};
  return {};
}

}  // namespace

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kRun:
      return "run";
    case Origin::kFile:
      return "file";
    case Origin::kEnvironment:
      return "environment";
    case Origin::kFlag:
      return "flag";
  }
  return "?";
}

std::string environment_name(std::string_view flag) {
  std::string name = "TRAINSCOPE_";
  for (char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

std::optional<std::string_view> switch_word(std::string_view text) {
  for (std::string_view yes : {"1", "true", "on"}) {
    if (text == yes) return "on";
  }
  for (std::string_view no : {"0", "false", "off"}) {
    if (text == no) return "off";
  }
  return std::nullopt;
}

std::string expected_text(const Flag& flag) {
  switch (flag.type) {
    case FlagType::kInteger:
    case FlagType::kNumber:
      return range_text(flag);
    case FlagType::kChoice:
      return join(split(flag.value, '|'), ", ");
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return "1 or 0, true or false, on or off";
    case FlagType::kText:
    case FlagType::kTexts:
      return "text that is not empty";
  }
  return {};
}

void check_flag_text(const Flag& flag, std::string_view text, std::string_view shown_name,
                     ErrorCode code) {
  if (takes(flag, text)) return;
  const bool is_text = flag.type == FlagType::kText || flag.type == FlagType::kTexts;
  if (is_text) fail(code, "{} is empty", shown_name);
  Error error(code, fmt::format("{} is '{}': expected {}", shown_name, printable(text),
                                expected_text(flag)));
  if (flag.type == FlagType::kChoice) error.hint(nearest_hint(text, split(flag.value, '|')));
  throw error;
}

Settings::Settings(const Command& command, std::span<const GivenFlag> given,
                   const Environment& environment, std::span<const FileValue> file) {
  for (const Flag& flag : join_flags({command.flags, global_flags()})) {
    Setting initial{.flag = flag, .texts = default_texts(flag)};
    const std::string dashed = fmt::format("--{}", flag.name);
    set(std::move(initial), dashed);
    for (const FileValue& value : file) {
      if (value.flag != flag.name) continue;
      set({.flag = flag, .texts = value.texts, .origin = Origin::kFile, .where = value.where},
          fmt::format("{}: {}", value.where, flag.name));
    }
    std::string variable = environment_name(flag.name);
    std::optional<std::string> text = environment(variable);
    const bool is_set = text && !text->empty();
    if (!is_set && !flag.formerly.empty()) {
      variable = environment_name(flag.formerly);
      text = environment(variable);
    }
    if (text && !text->empty()) {
      const std::optional<std::string_view> word =
          is_switch(flag) ? switch_word(*text) : std::nullopt;
      set({.flag = flag,
           .texts = {word ? std::string(*word) : *text},
           .origin = Origin::kEnvironment,
           .where = variable},
          variable);
    }
    for (const GivenFlag& one : given) {
      if (one.name != flag.name) continue;
      set({.flag = flag, .texts = one.texts, .origin = Origin::kFlag, .where = dashed}, dashed);
    }
  }
}

void Settings::set(Setting setting, std::string_view shown_name) {
  const ErrorCode code = setting.origin == Origin::kRun ? ErrorCode::kBadInput : ErrorCode::kUsage;
  for (const std::string& text : setting.texts) {
    check_flag_text(setting.flag, text, shown_name, code);
  }
  std::string name(setting.flag.name);
  settings_.insert_or_assign(std::move(name), std::move(setting));
}

bool Settings::given(std::string_view flag) const {
  const Setting& found = setting(flag);
  if (found.origin != Origin::kFile) return found.origin > Origin::kRun;
  const Setting initial{.flag = found.flag, .texts = default_texts(found.flag)};
  return initial.texts.size() != found.texts.size() || json_of(initial) != json_of(found);
}

Settings Settings::with_run(const Json& options) const {
  Settings changed = *this;
  for (const JsonMember& option : options.as_object()) {
    const auto found = std::ranges::find_if(changed.settings_, [&option](const auto& each) {
      return each.second.flag.is_called(option.key);
    });
    if (found == changed.settings_.end() || found->second.origin > Origin::kRun) continue;
    const Flag flag = found->second.flag;
    std::vector<std::string> texts = recorded_texts(option.value);
    if (flag.type != FlagType::kTexts && texts.size() != 1) {
      fail(ErrorCode::kBadInput, "the run's option '{}' is no single value", flag.name);
    }
    changed.set({.flag = flag, .texts = std::move(texts), .origin = Origin::kRun},
                fmt::format("the run's option '{}'", flag.name));
  }
  return changed;
}

Settings Settings::with_flags(std::span<const GivenFlag> given) const {
  Settings changed = *this;
  for (const GivenFlag& one : given) {
    const std::string dashed = fmt::format("--{}", one.name);
    changed.set({.flag = setting(one.name).flag,
                 .texts = one.texts,
                 .origin = Origin::kFlag,
                 .where = dashed},
                dashed);
  }
  return changed;
}

const Settings::Setting& Settings::setting(std::string_view flag) const {
  const auto found = settings_.find(flag);
  CHECK_INVARIANT(found != settings_.end());  // the verb's table lacks the flag
  return found->second;
}

bool Settings::on(std::string_view flag) const { return text(flag) == "on"; }

const std::string& Settings::text(std::string_view flag) const {
  const Setting& found = setting(flag);
  CHECK_INVARIANT(!found.texts.empty());
  return found.texts.back();
}

std::int64_t Settings::integer(std::string_view flag) const { return *parse_int(text(flag)); }

double Settings::number(std::string_view flag) const { return *parse_number(text(flag)); }

std::string Settings::text_or_empty(std::string_view flag) const {
  return has(flag) ? text(flag) : std::string();
}

std::optional<std::int64_t> Settings::find_integer(std::string_view flag) const {
  return has(flag) ? std::optional(integer(flag)) : std::nullopt;
}

Json json_of(const Settings::Setting& setting) {
  if (setting.flag.type == FlagType::kTexts) return Json::list(setting.texts);
  CHECK_INVARIANT(!setting.texts.empty());
  const std::string& text = setting.texts.back();
  switch (setting.flag.type) {
    case FlagType::kInteger:
      return *parse_int(text);
    case FlagType::kNumber:
      return *parse_number(text);
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return text == "on";
    case FlagType::kText:
    case FlagType::kTexts:
    case FlagType::kChoice:
      return text;
  }
  return nullptr;
}

}  // namespace trainscope
