// Finds the program in this one's folder, and starts it.
#include "cli/window_program.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/plugin/plugin.h"

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
  for (const LoadedPlugin* plugin : loaded_plugins()) {
    words.insert(words.end(), {"--plugin", plugin->file.string()});
  }
  std::vector<char*> pointers = {name.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(name.c_str(), pointers.data());
  fail(ErrorCode::kIo, "cannot start {}: {}", name, std::strerror(errno));
}

using Clock = std::chrono::steady_clock;

// Whether there is something to read, or its end, before the deadline.
bool has_more(int file, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waits = {.fd = file, .events = POLLIN, .revents = 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Until there is no more; none where that takes longer.
std::optional<std::string> read_all(int file, std::optional<Clock::time_point> deadline) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    if (deadline && !has_more(file, *deadline)) return std::nullopt;
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
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

bool has_window_program() { return access(program_path().c_str(), X_OK) == 0; }

void add_window_flags(std::vector<std::string>& words, const Settings& settings,
                      std::span<const Flag> flags) {
  for (const Flag& flag : flags) {
    for (const std::string& text : settings.texts(flag.name)) {
      words.insert(words.end(), {"--" + std::string(flag.name), text});
    }
  }
}

void require_window_program() {
  if (has_window_program()) return;
  throw Error(ErrorCode::kIo, "this build has no trainscope-window")
      .hint("`scripts/setup.sh window` installs what it needs; then configure and build again");
}

void become_window_program(const std::vector<std::string>& arguments) {
  require_window_program();
  execute(program_path(), arguments);
}

void run_window_program(std::vector<std::string> arguments, std::optional<int> most_seconds) {
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
  const auto deadline = most_seconds
                            ? std::optional(Clock::now() + std::chrono::seconds(*most_seconds))
                            : std::nullopt;
  const std::optional<std::string> said = read_all(ends[0], deadline);
  close(ends[0]);
  if (!said) kill(child, SIGKILL);
  const int status = wait_for(child);
  require(said.has_value(), ErrorCode::kRunFailed,
          "trainscope-window had not ended after {} seconds", most_seconds.value_or(0));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  require(WIFEXITED(status), ErrorCode::kRunFailed, "trainscope-window was ended by signal {}",
          WTERMSIG(status));
  rethrow(WEXITSTATUS(status), *said);
}

}  // namespace trainscope
