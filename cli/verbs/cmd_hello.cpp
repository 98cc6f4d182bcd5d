// hello: which program this is.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/machine.h"

namespace trainscope {
namespace {

Outcome run_hello(const Invocation&) {
  return {.facts = Json::object({{"hello", program_version()}}),
          .text = fmt::format("trainscope {}\n", program_version())};
}

}  // namespace

Command hello_command() {
  return {.name = "hello",
          .summary = "Say which program this is.",
          .examples = {"trainscope hello"},
          .run = run_hello};
}

}  // namespace trainscope
