// trainscope-window: the program beside this one that draws.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/flags/settings.h"

namespace trainscope {

// The values of these flags as words for it, which has flags of the same names.
void add_window_flags(std::vector<std::string>& words, const Settings& settings,
                      std::span<const Flag> flags);

// Throws kIo where it was not built.
void require_window_program();

// Becomes it: does not return. Throws kIo.
[[noreturn]] void become_window_program(const std::vector<std::string>& arguments);

bool has_window_program();

// Runs it to its end, and throws the error that it says it ended with; kRunFailed where it has not
// ended after `most_seconds`: then it is killed.
void run_window_program(std::vector<std::string> arguments,
                        std::optional<int> most_seconds = std::nullopt);

}  // namespace trainscope
