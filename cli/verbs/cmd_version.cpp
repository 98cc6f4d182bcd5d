// version: of this program.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/machine.h"

namespace trainscope {
namespace {

Outcome run_version(const Invocation&) {
  return {.facts = Json::object({{"version", program_version()}}),
          .text = fmt::format("trainscope {}\n", program_version())};
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .summary = "Print the version of this program.",
          .examples = {"trainscope version", "trainscope version --json"},
          .run = run_version};
}

}  // namespace trainscope
