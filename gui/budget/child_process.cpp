// Sockets, pipes and posix_spawn.
#include "gui/budget/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <system_error>
#include <thread>

namespace trainscope::gui {
namespace {

FileDescriptor above_standard(int descriptor) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kChildDescriptor + 1);
  ::close(descriptor);
  return FileDescriptor(moved);
}

// `from` becomes `to`; without one it leads nowhere.
void add_output(posix_spawn_file_actions_t& actions, int from, int to) {
  if (from >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, from, to);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, to, "/dev/null", O_WRONLY, 0);
  }
}

}  // namespace

std::optional<DescriptorPair> socket_pair() {
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return DescriptorPair{.ours = above_standard(ends[0]), .child = above_standard(ends[1])};
}

std::optional<DescriptorPair> pipe_pair() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  DescriptorPair pair{.ours = above_standard(ends[0]), .child = above_standard(ends[1])};
  ::fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK);
  return pair;
}

int spawn_child(const std::filesystem::path& program, std::vector<std::string>& words,
                const ChildStreams& streams, pid_t& process) {
  std::string name = program.string();
  std::vector<char*> arguments = {name.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  add_output(actions, streams.out, STDOUT_FILENO);
  add_output(actions, streams.errors, STDERR_FILENO);
  if (streams.socket >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, streams.socket, kChildDescriptor);
  }
  const int error =
      ::posix_spawn(&process, name.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

void forget_child(pid_t process) {
  if (::waitpid(process, nullptr, WNOHANG) != 0) return;
  std::thread([process] { ::waitpid(process, nullptr, 0); }).detach();
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::filesystem::path trainscope_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "trainscope";
}

}  // namespace trainscope::gui
