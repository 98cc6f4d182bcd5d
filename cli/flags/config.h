// Configuration files: TOML whose keys are names of flags, and --set.
//
// At the top level stand flags of `train` and of every verb; other verbs with a flag of the name
// read them too. A table [VERB] holds flags of one verb and goes before the top level. The key
// `model` is the first argument of verbs that begin with a model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/parser.h"
#include "cli/flags/settings.h"

namespace trainscope {

struct Config {
  std::vector<FileValue> values;  // of a verb: those of its table last
  std::optional<FileValue> model;
  std::size_t key_count = 0;  // of the whole file
};

// Reads and checks all of a file. Throws kUsage that lists everything wrong with it: keys that
// nothing knows (with the nearest name), values of the wrong type or outside their range.
Config read_config(const std::filesystem::path& file, const Command& command);

// --config or TRAINSCOPE_CONFIG; nothing without either.
std::optional<Config> given_config(const Command& command, const ParsedLine& line,
                                   const Environment& environment);

// Turns each --set KEY=VALUE into the flag KEY; KEY is a flag of the verb, or VERB.FLAG, which
// other verbs pass over. Throws kUsage for other keys, and for a flag that is given as itself too.
void apply_sets(const Command& command, ParsedLine& line);

// Flags that a file cannot set: they say how the program talks, or name the file.
bool belongs_on_command_line(std::string_view flag);
// The flags of a verb that a file may set, those of every verb included.
std::vector<Flag> config_flags(const Command& command);
// The verb's first argument is a model.
bool takes_model(const Command& command);

// The verb of that name; null for others.
const Command* command_named(std::string_view name);

// A JSON Schema of configuration files.
Json config_schema();

}  // namespace trainscope
