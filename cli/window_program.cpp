// Finds the program in this one's folder, and starts it.
#include "cli/window_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/json.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

fs::path program_path() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  require(!error, ErrorCode::kIo, "cannot tell where this program is: {}", error.message());
  return own.parent_path() / "trainscope-window";
}

[[noreturn]] void execute(const fs::path& program, const std::vector<std::string>& arguments) {
  std::string name = program.string();
  std::vector<std::string> words = arguments;
  std::vector<char*> pointers = {name.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(name.c_str(), pointers.data());
  fail(ErrorCode::kIo, "cannot start {}: {}", name, std::strerror(errno));
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
}

[[noreturn]] void rethrow(int exit_code, const std::string& said) {
  try {
    const Json json = Json::parse(said);
    throw Error(static_cast<ErrorCode>(json.get<int>("code")), json.get<std::string>("message"))
        .hint(json.get_or("hint", ""));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadInput && !said.starts_with('{')) {
      fail(ErrorCode::kRunFailed, "trainscope-window ended with code {}: {}", exit_code, said);
    }
    throw;
  }
}

}  // namespace

void require_window_program() {
  if (access(program_path().c_str(), X_OK) == 0) return;
  throw Error(ErrorCode::kIo, "this build has no trainscope-window")
      .hint("`scripts/setup.sh window` installs what it needs; then configure and build again");
}

void become_window_program(const std::vector<std::string>& arguments) {
  require_window_program();
  execute(program_path(), arguments);
}

void run_window_program(std::vector<std::string> arguments) {
  require_window_program();
  arguments.insert(arguments.end(), {"--errors", "json"});
  std::array<int, 2> ends = {};
  require(pipe(ends.data()) == 0, ErrorCode::kIo, "no pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  require(child >= 0, ErrorCode::kIo, "no process: {}", std::strerror(errno));
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    try {
      execute(program_path(), arguments);
    } catch (const Error&) {
      _exit(127);
    }
  }
  close(ends[1]);
  const std::string said = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  require(WIFEXITED(status), ErrorCode::kRunFailed, "trainscope-window was ended by signal {}",
          WTERMSIG(status));
  rethrow(WEXITSTATUS(status), said);
}

}  // namespace trainscope
