// Flag values: conversion, checks, precedence default < environment < flag.
#include "cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// "--steps" or "TRAINSCOPE_STEPS": what the user has to look at.
std::string shown_name(const Flag& flag, Origin origin) {
  if (origin == Origin::kRun) return fmt::format("the run's option '{}'", flag.name);
  if (origin == Origin::kEnvironment) return environment_name(flag.name);
  return fmt::format("--{}", flag.name);
}

ErrorCode code_of(Origin origin) {
  return origin == Origin::kRun ? ErrorCode::kBadInput : ErrorCode::kUsage;
}

[[noreturn]] void bad_value(const Flag& flag, Origin origin, std::string_view text,
                            std::string expected) {
  fail(code_of(origin), "{} is '{}': expected {}", shown_name(flag, origin), printable(text),
       expected);
}

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

void check_number(const Flag& flag, Origin origin, std::string_view text) {
  std::optional<double> value = parse_number(text);
  if (flag.type == FlagType::kInteger) {
    const std::optional<std::int64_t> whole = parse_int(text);
    value = whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  if (!value || *value < flag.minimum || *value > flag.maximum) {
    bad_value(flag, origin, text, range_text(flag));
  }
}

void check_choice(const Flag& flag, Origin origin, std::string_view text) {
  const std::vector<std::string_view> words = split(flag.value, '|');
  if (std::ranges::find(words, text) != words.end()) return;
  throw Error(code_of(origin), fmt::format("{} is '{}': expected {}", shown_name(flag, origin),
                                           printable(text), join(words, ", ")))
      .hint(nearest_hint(text, words));
}

void check_value(const Flag& flag, Origin origin, std::string_view text) {
  switch (flag.type) {
    case FlagType::kInteger:
    case FlagType::kNumber:
      return check_number(flag, origin, text);
    case FlagType::kChoice:
      return check_choice(flag, origin, text);
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return;
    case FlagType::kText:
    case FlagType::kTexts:
      require(!text.empty(), code_of(origin), "{} is empty", shown_name(flag, origin));
      return;
  }
}

// Variables for switches hold 1 or 0, true or false, on or off.
std::string switch_text(const Flag& flag, std::string_view text) {
  for (std::string_view yes : {"1", "true", "on"}) {
    if (text == yes) return "on";
  }
  for (std::string_view no : {"0", "false", "off"}) {
    if (text == no) return "off";
  }
  bad_value(flag, Origin::kEnvironment, text, "1 or 0, true or false, on or off");
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

}  // namespace

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kRun:
      return "run";
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

Settings::Settings(const Command& command, std::span<const GivenFlag> given,
                   const Environment& environment) {
  for (const Flag& flag : join_flags({command.flags, global_flags()})) {
    std::vector<std::string> texts;
    if (!flag.fallback.empty()) texts.emplace_back(flag.fallback);
    if (is_switch(flag) && texts.empty()) texts.emplace_back("off");
    set(flag, std::move(texts), Origin::kDefault);
    const std::optional<std::string> variable = environment(environment_name(flag.name));
    if (variable && !variable->empty()) {
      std::string text = is_switch(flag) ? switch_text(flag, *variable) : *variable;
      set(flag, {std::move(text)}, Origin::kEnvironment);
    }
    for (const GivenFlag& one : given) {
      if (one.name == flag.name) set(flag, one.texts, Origin::kFlag);
    }
  }
}

void Settings::set(const Flag& flag, std::vector<std::string> texts, Origin origin) {
  for (const std::string& text : texts) check_value(flag, origin, text);
  settings_.insert_or_assign(std::string(flag.name),
                             Setting{.flag = flag, .texts = std::move(texts), .origin = origin});
}

Settings Settings::with_run(const Json& options) const {
  Settings changed = *this;
  for (const JsonMember& option : options.as_object()) {
    const auto found = changed.settings_.find(option.key);
    if (found == changed.settings_.end() || given(option.key)) continue;
    const Flag flag = found->second.flag;
    std::vector<std::string> texts = recorded_texts(option.value);
    if (flag.type != FlagType::kTexts && texts.size() != 1) {
      fail(ErrorCode::kBadInput, "the run's option '{}' is no single value", flag.name);
    }
    changed.set(flag, std::move(texts), Origin::kRun);
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
