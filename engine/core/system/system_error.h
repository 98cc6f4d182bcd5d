// Failed system calls on files as errors: what, which path, why, and what to do.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace trainscope {

// Throws kIo "cannot WHAT 'PATH': REASON" for an errno value, with a hint where there is one.
[[noreturn]] void fail_system(int error_number, std::string_view what,
                              const std::filesystem::path& path);

// A path that C functions would cut at an embedded NUL is refused (kBadInput).
void check_path(const std::filesystem::path& path);

// "a folder", "a FIFO", "a symbolic link" of a file's st_mode.
std::string_view kind_of(mode_t mode);

// "'PATH'", safe to print.
std::string quoted(const std::filesystem::path& path);

}  // namespace trainscope
