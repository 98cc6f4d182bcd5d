// The values of a verb's flags and arguments, and where each comes from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace trainscope {

// A later one wins.
enum class Origin : std::uint8_t { kDefault, kRun, kEnvironment, kFlag };

// "default", "run", "environment", "flag".
std::string_view name_of(Origin origin);

// What the command line gave for one flag, unchecked.
struct GivenFlag {
  std::string_view name;
  std::vector<std::string> texts;  // "on" or "off" of switches and toggles
};

// Gives the value of an environment variable; none when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

class Settings {
 public:
  Settings() = default;
  // Defaults, then the environment, then flags. Throws kUsage for a value that its flag does not
  // take.
  Settings(const Command& command, std::span<const GivenFlag> given,
           const Environment& environment);

  // The options of a recorded run in place of defaults. Those that the verb has no flag for are
  // left out. Throws kBadInput for a value that its flag does not take.
  Settings with_run(const Json& options) const;

  // Whether the flag has a value at all, also a default one.
  bool has(std::string_view flag) const { return !setting(flag).texts.empty(); }
  // Whether this call asks for the value.
  bool given(std::string_view flag) const { return setting(flag).origin > Origin::kRun; }

  // Of kSwitch and kToggle.
  bool on(std::string_view flag) const;
  // These need a value: has(flag), or a default in the table.
  const std::string& text(std::string_view flag) const;
  std::int64_t integer(std::string_view flag) const;
  double number(std::string_view flag) const;
  // All of a kTexts flag.
  const std::vector<std::string>& texts(std::string_view flag) const { return setting(flag).texts; }

  // "" and nothing for flags without a value.
  std::string text_or_empty(std::string_view flag) const;
  std::optional<std::int64_t> find_integer(std::string_view flag) const;

  // Every flag that has a value, by name.
  struct Setting {
    Flag flag;
    std::vector<std::string> texts;
    Origin origin = Origin::kDefault;
  };
  const std::map<std::string, Setting, std::less<>>& all() const { return settings_; }

 private:
  const Setting& setting(std::string_view flag) const;
  void set(const Flag& flag, std::vector<std::string> texts, Origin origin);

  std::map<std::string, Setting, std::less<>> settings_;
};

// The environment variable of a flag: "TRAINSCOPE_RUN_DIR".
std::string environment_name(std::string_view flag);
// The value as a JSON value of its type; an array for kTexts.
Json json_of(const Settings::Setting& setting);

}  // namespace trainscope
