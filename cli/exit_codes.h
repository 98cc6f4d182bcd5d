// What the exit codes mean, for help and for error records.
#pragma once

#include <exception>
#include <span>
#include <string_view>

#include "engine/core/error.h"

namespace trainscope {

struct ExitCode {
  int code = 0;
  std::string_view name;  // "bad_input"
  std::string_view meaning;
};

std::span<const ExitCode> exit_codes();
// "run_failed" for a code without a row.
std::string_view exit_code_name(int code);

// What any exception says to a user: an Error as it is, the others with the nearest code.
Error error_of(const std::exception& exception);

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT
inline constexpr int kExitTerminated = 143;   // 128 + SIGTERM

}  // namespace trainscope
