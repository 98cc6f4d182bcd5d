// trainscope-window: the program beside this one that draws.
#pragma once

#include <string>
#include <vector>

namespace trainscope {

// Throws kIo where it was not built.
void require_window_program();

// Becomes it: does not return. Throws kIo.
[[noreturn]] void become_window_program(const std::vector<std::string>& arguments);

// Runs it to its end, and throws the error that it says it ended with.
void run_window_program(std::vector<std::string> arguments);

}  // namespace trainscope
