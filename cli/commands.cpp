// The list of verbs and the flags that all of them take.
#include "cli/command.h"

namespace trainscope {

#define COMMAND(name) Command name##_command();
#include "cli/commands.def"
#undef COMMAND

const std::vector<Command>& all_commands() {
#define COMMAND(name) name##_command(),
  static const std::vector<Command> commands = {
#include "cli/commands.def"
  };
#undef COMMAND
  return commands;
}

std::span<const Flag> global_flags() {
  static constexpr std::array kCommonFlags = {
      Flag{.name = "json", .type = FlagType::kSwitch, .help = "One JSON object on standard output"},
      Flag{.name = "quiet",
           .type = FlagType::kSwitch,
           .help = "Warnings and errors only",
           .letter = 'q'},
      Flag{.name = "verbose",
           .type = FlagType::kSwitch,
           .help = "Say more about what happens",
           .letter = 'v'},
      Flag{.name = "log-level",
           .type = FlagType::kChoice,
           .value = "debug|info|warning|error",
           .fallback = "info",
           .help = "What standard error tells; -q is warning, -v is debug"},
      Flag{.name = "log-format",
           .type = FlagType::kChoice,
           .value = "text|json",
           .fallback = "text",
           .help = "json: one object a line on standard error"},
      Flag{.name = "config",
           .value = "FILE.toml",
           .help = "Values of flags; the environment and the command line win over it"},
      Flag{.name = "set",
           .type = FlagType::kTexts,
           .value = "KEY=VALUE",
           .help = "A flag by its name in a configuration file, or VERB.KEY"},
      Flag{.name = "color",
           .type = FlagType::kChoice,
           .value = "auto|always|never",
           .fallback = "auto",
           .help = "Colours on standard error; auto: on a terminal unless NO_COLOR is set"},
      Flag{.name = "progress",
           .type = FlagType::kChoice,
           .value = "auto|plain|none",
           .fallback = "auto",
           .help = "auto: a bar on a terminal, else plain lines"},
      Flag{.name = "seed",
           .type = FlagType::kInteger,
           .value = "N",
           .fallback = "0",
           .help = "Of everything random",
           .minimum = 0},
      Flag{.name = "threads",
           .type = FlagType::kInteger,
           .value = "N",
           .help = "CPU threads; default: the cores this process may use",
           .minimum = 1,
           .maximum = 1024},
      Flag{.name = "device",
           .type = FlagType::kText,
           .value = "cpu|cuda|cuda:N",
           .fallback = "cpu",
           .help = "Where kernels run: cuda is the first GPU"},
      Flag{.name = "plugin",
           .type = FlagType::kTexts,
           .value = "FILE.so",
           .help = "A library with ops, kernels and optimizers of its own (may be repeated); it "
                   "runs with all rights of this program"},
  };
  return kCommonFlags;
}

std::vector<Flag> join_flags(std::initializer_list<std::span<const Flag>> groups) {
  std::vector<Flag> all;
  for (std::span<const Flag> group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace trainscope
