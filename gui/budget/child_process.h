// Processes that this one starts, and the ends of what they write to.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/folder.h"

namespace trainscope::gui {

// A file that is opened here has another number than the one that a child is to have.
inline constexpr int kChildDescriptor = 3;

struct DescriptorPair {
  FileDescriptor ours;
  FileDescriptor child;
};
// Both ends are closed where another program begins. None where the system has no more.
std::optional<DescriptorPair> socket_pair();
// What the child writes can be read here, without waiting.
std::optional<DescriptorPair> pipe_pair();

// What the child has its streams from; -1: nothing, and nothing else of this process goes to it.
struct ChildStreams {
  int out = -1;
  int errors = -1;
  int socket = -1;  // becomes kChildDescriptor
};
// 0, or the error's number.
int spawn_child(const std::filesystem::path& program, std::vector<std::string>& words,
                const ChildStreams& streams, pid_t& process);

// Takes the exit status of a child that nobody looks at any more, when it has one.
void forget_child(pid_t process);

// "ended with exit code 2", "was ended by signal 9 (Killed)".
std::string end_text(int status);

// The trainscope program: it is beside this one.
std::filesystem::path trainscope_program();

}  // namespace trainscope::gui
