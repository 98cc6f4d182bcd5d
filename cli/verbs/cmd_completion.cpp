// completion: a script for a shell.
#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/print/completion.h"

namespace trainscope {
namespace {

Outcome run_completion(const Invocation& invocation) {
  const std::string& shell = invocation.argument(0);
  std::string script = shell == "bash"  ? bash_completion()
                       : shell == "zsh" ? zsh_completion()
                                        : fish_completion();
  return {.facts = Json::object({{"shell", shell}, {"script", script}}), .text = std::move(script)};
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "Print a script that completes the command line in a shell.",
          .arguments = {{.name = "SHELL", .help = "bash, zsh or fish", .words = "bash|zsh|fish"}},
          .examples = {"trainscope completion bash", "trainscope completion fish"},
          .run = run_completion};
}

}  // namespace trainscope
