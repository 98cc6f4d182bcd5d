// What a verb of the command line is: one table row that help, parser and completion read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

class Invocation;

enum class FlagType : std::uint8_t {
  kSwitch,   // --json
  kToggle,   // --bias and --no-bias
  kText,     // --loss SPEC
  kTexts,    // the same, may be given several times
  kChoice,   // --optimizer sgd|adamw: `value` lists the words
  kInteger,  // --steps N
  kNumber,   // --lr X
};

// A flag is also read from the environment: --run-dir from TRAINSCOPE_RUN_DIR.
struct Flag {
  std::string_view name;  // without dashes
  FlagType type = FlagType::kText;
  std::string_view value = {};     // what follows it, for help: "FILE"; of kChoice "a|b|c"
  std::string_view fallback = {};  // the default as text ("on" or "off" of kToggle); empty: none
  std::string_view help = {};
  char letter = 0;  // -o
  // Of kInteger and kNumber.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  // The name that it had before, which is accepted too: on the command line, in the environment,
  // in configuration files and in recorded runs; empty: none. Not of kToggle.
  std::string_view formerly = {};
  // Names that other tools have for it, "batch-size|bs": accepted on the command line, in
  // configuration files and by --set. Not of kToggle.
  std::string_view also = {};
  // Of kChoice: names with a dot in them are taken too. Plugins bring them, and who reads the flag
  // knows whether there is such a one.
  bool open = false;

  bool is_called(std::string_view word) const {
    return word == name || (!formerly.empty() && word == formerly) || is_also_called(word);
  }
  bool is_also_called(std::string_view word) const {
    std::string_view rest = also;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('|'), rest.size());
      if (rest.substr(0, end) == word) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  }
};

// A word that belongs to no flag.
struct Argument {
  std::string_view name;  // "MODEL.onnx"
  std::string_view help;
  bool required = true;
  bool repeated = false;        // takes all that are left; only the last argument
  std::string_view words = {};  // "show|validate": nothing else is taken
  // Stands behind the flags and a "--": what begins with a dash there is no flag of the verb.
  bool behind_dashes = false;
};

// What a verb has to say: `facts` with --json, else `text`, on standard output.
struct Outcome {
  Json facts = Json::object();
  std::string text = {};
  int exit_code = 0;
  bool told = false;  // by another process: nothing is printed
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line
  std::vector<Argument> arguments = {};
  std::vector<Flag> flags = {};  // besides global_flags()
  std::array<std::string_view, 2> examples = {};
  Outcome (*run)(const Invocation&) = nullptr;
  // Of a verb whose arguments decide its flags: the command as it is for the words that follow the
  // verb.
  Command (*for_words)(const Command& self, std::span<const std::string> words) = nullptr;
  // The table of a configuration file that is for it, when it is not called as the verb is.
  std::string_view table = {};
  // The flags that --help shows, in this order; --help-all and `help VERB` show all of them. Empty:
  // --help shows all too.
  std::vector<std::string_view> essential = {};

  // Words behind a "--" are its arguments, and none of its flags.
  bool takes_dashes() const {
    return std::ranges::any_of(arguments, [](const Argument& a) { return a.behind_dashes; });
  }
  std::string_view config_table() const { return table.empty() ? name : table; }
};

// The verbs of commands.def in its order.
const std::vector<Command>& all_commands();
// Flags that every verb takes.
std::span<const Flag> global_flags();

// Several groups of flags as one list.
std::vector<Flag> join_flags(std::initializer_list<std::span<const Flag>> groups);

}  // namespace trainscope
