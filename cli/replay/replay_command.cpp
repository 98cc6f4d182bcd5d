// The command of train, with other flags in front.
#include "cli/replay/replay_command.h"

#include "cli/replay/replayable.h"

namespace trainscope {

Command train_command();

Command replay_command(std::span<const Flag> own, Outcome (*run)(const Invocation&)) {
  Command command = train_command();
  command.flags.insert(command.flags.begin(), own.begin(), own.end());
  command.run = run;
  command.table = "train";
  return command;
}

Outcome unless_stopped(const std::function<Outcome()>& run) {
  try {
    return run();
  } catch (const SignalCame& signal) {
    return {.text = "stopped before the steps were run again\n", .exit_code = signal.exit_code};
  }
}

}  // namespace trainscope
