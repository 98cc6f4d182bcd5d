// What the exit codes mean, for help and for error records.
#pragma once

#include <span>
#include <string_view>

#include "engine/core/any_error.h"  // IWYU pragma: export

namespace trainscope {

struct ExitCode {
  int code = 0;
  std::string_view name;  // "bad_input"
  std::string_view meaning;
};

std::span<const ExitCode> exit_codes();
// "run_failed" for a code without a row.
std::string_view exit_code_name(int code);

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT
inline constexpr int kExitTerminated = 143;   // 128 + SIGTERM

}  // namespace trainscope
