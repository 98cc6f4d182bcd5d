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
#include "engine/core/error.h"

namespace trainscope {

// A later one wins.
enum class Origin : std::uint8_t { kDefault, kRun, kFile, kEnvironment, kFlag };

// "default", "run", "file", "environment", "flag".
std::string_view name_of(Origin origin);

// What the command line gave for one flag, unchecked.
struct GivenFlag {
  std::string_view name;
  std::vector<std::string> texts;  // "on" or "off" of switches and toggles
};

// What a configuration file says for one flag, of the flag's type but otherwise unchecked.
struct FileValue {
  std::string flag;
  std::vector<std::string> texts;
  std::string where;  // "x.toml:3:8"
};

// Gives the value of an environment variable; none when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

class Settings {
 public:
  Settings() = default;
  // Defaults, then the file, then the environment, then flags. Of several values of a file for one
  // flag the last counts; values for flags that the verb lacks are left out. Throws kUsage for a
  // value that its flag does not take.
  Settings(const Command& command, std::span<const GivenFlag> given, const Environment& environment,
           std::span<const FileValue> file = {});

  // The options of a recorded run in place of defaults. Those that the verb has no flag for are
  // left out. Throws kBadInput for a value that its flag does not take.
  Settings with_run(const Json& options) const;

  // These values as if the command line had given them. Throws kUsage for one that its flag does
  // not take; the verb must have the flags.
  Settings with_flags(std::span<const GivenFlag> given) const;

  // Whether the flag has a value at all, also a default one.
  bool has(std::string_view flag) const { return !setting(flag).texts.empty(); }
  // Whether this call asks for the value. A default that a file spells out, as the config.toml of a
  // run does, asks for nothing.
  bool given(std::string_view flag) const;

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
    std::string where = {};  // "x.toml:3:8", "TRAINSCOPE_LR", "--lr"; of a default ""
  };
  const std::map<std::string, Setting, std::less<>>& all() const { return settings_; }

 private:
  const Setting& setting(std::string_view flag) const;
  void set(Setting setting, std::string_view shown_name);

  std::map<std::string, Setting, std::less<>> settings_;
};

// The environment variable of a flag: "TRAINSCOPE_RUN_DIR".
std::string environment_name(std::string_view flag);
// Throws `code` "NAME is 'TEXT': expected ..." unless the flag takes the text; `shown_name` is what
// the user has to look at.
void check_flag_text(const Flag& flag, std::string_view text, std::string_view shown_name,
                     ErrorCode code);
// "a whole number of 1 or more", "sgd, adamw": what a flag takes.
std::string expected_text(const Flag& flag);
// "on" or "off" for the words that stand for them (1 and 0, true and false); nothing for others.
std::optional<std::string_view> switch_word(std::string_view text);
// The value as a JSON value of its type; an array for kTexts.
Json json_of(const Settings::Setting& setting);

}  // namespace trainscope
