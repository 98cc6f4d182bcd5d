// The table of exit codes.
#include "cli/exit_codes.h"

#include <array>

namespace trainscope {

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kCodes = {
      ExitCode{0, "ok", "done"},
      ExitCode{1, "run_failed", "the run failed for a reason without a code of its own"},
      ExitCode{2, "usage", "wrong command line or configuration"},
      ExitCode{
          3, "bad_input",
          "bad model, data, reference or checkpoint file; an op, gradient or kernel is missing"},
      ExitCode{4, "no_device", "no such device or driver"},
      ExitCode{5, "out_of_memory", "out of memory, or no plan fits the budget"},
      ExitCode{6, "io", "a file or folder cannot be read or written"},
      ExitCode{7, "numeric", "NaN or infinity where a number must be"},
      ExitCode{8, "distributed", "a failure between the processes of a run"},
      ExitCode{9, "mismatch", "a comparison is outside its tolerance"},
      ExitCode{kExitInterrupted, "interrupted", "stopped by SIGINT; what was trained is saved"},
      ExitCode{kExitTerminated, "terminated", "stopped by SIGTERM; what was trained is saved"},
  };
  return kCodes;
}

std::string_view exit_code_name(int code) {
  for (const ExitCode& row : exit_codes()) {
    if (row.code == code) return row.name;
  }
  return "run_failed";
}

}  // namespace trainscope
