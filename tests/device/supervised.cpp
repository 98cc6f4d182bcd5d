// A pipe of lines from a child: "@12" begins piece 12, the others are reports.
#include "tests/device/supervised.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>

namespace trainscope::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCannotGoOn = 3;  // exit codes of the child
constexpr int kCannotStart = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void write_line(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(pipe, text.data() + done, text.size() - done);
    if (count <= 0) _exit(kCannotGoOn);
    done += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void be_child(int pipe, std::size_t first, const SupervisedOptions& options,
                           Clock::time_point began, const std::function<void()>& start,
                           const Piece& piece) {
  try {
    start();
  } catch (const std::exception& error) {
    write_line(pipe, fmt::format("! {}", error.what()));
    _exit(kCannotStart);
  }
  const Report report = [pipe](const std::string& line) { write_line(pipe, line); };
  for (std::size_t i = first; i < options.pieces; ++i) {
    if (seconds_since(began) > options.total_seconds) break;
    write_line(pipe, fmt::format("@{}", i));
    if (!piece(i, report)) _exit(kCannotGoOn);
  }
  _exit(0);
}

// What a child said so far, and the piece that it is in.
class Child {
 public:
  Child(pid_t id, int pipe) : id_(id), pipe_(pipe) {}

  // Reads until the child is done or lost, or silent for too long. Says how it ended.
  std::string follow(const SupervisedOptions& options, const SupervisedEvents& events) {
    std::string rest;
    for (;;) {
      pollfd ready{.fd = pipe_, .events = POLLIN, .revents = 0};
      const int milliseconds = static_cast<int>(options.piece_seconds * 1e3);
      if (poll(&ready, 1, milliseconds) <= 0) {
        kill(id_, SIGKILL);
        (void)ended();
        return fmt::format("nothing for {:g} seconds: ended", options.piece_seconds);
      }
      char bytes[4096];
      const ssize_t count = read(pipe_, bytes, sizeof(bytes));
      if (count <= 0) return ended();
      rest.append(bytes, static_cast<std::size_t>(count));
      for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
        take(rest.substr(0, end), events);
        rest.erase(0, end + 1);
      }
    }
  }
  const std::optional<std::size_t>& piece() const { return piece_; }
  bool did_not_start() const { return exit_code_ == kCannotStart; }

 private:
  void take(const std::string& line, const SupervisedEvents& events) {
    if (line.starts_with('@')) {
      piece_ = std::stoul(line.substr(1));
    } else {
      events.line(line);
    }
  }
  // Empty when all is well.
  std::string ended() {
    int status = 0;
    waitpid(id_, &status, 0);
    close(pipe_);
    if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
    exit_code_ = WEXITSTATUS(status);
    if (exit_code_ == 0) return {};
    return exit_code_ == kCannotGoOn ? "the device is lost"
                                     : fmt::format("ended with code {}", exit_code_);
  }

  pid_t id_;
  int pipe_;
  int exit_code_ = 0;
  std::optional<std::size_t> piece_;
};

}  // namespace

std::size_t run_supervised(const SupervisedOptions& options, const std::function<void()>& start,
                           const Piece& piece, const SupervisedEvents& events) {
  const Clock::time_point began = Clock::now();
  std::size_t next = 0;
  while (next < options.pieces && seconds_since(began) <= options.total_seconds) {
    int pipes[2] = {-1, -1};
    if (pipe(pipes) != 0) return next;
    std::fflush(nullptr);
    const pid_t id = fork();
    if (id == 0) {
      close(pipes[0]);
      be_child(pipes[1], next, options, began, start, piece);
    }
    close(pipes[1]);
    if (id < 0) return next;
    Child child(id, pipes[0]);
    const std::string how = child.follow(options, events);
    if (child.piece()) next = *child.piece() + 1;
    if (how.empty() || child.did_not_start()) return next;
    if (!child.piece()) return next;  // it would end so again
    events.lost(*child.piece(), how);
  }
  return next;
}

}  // namespace trainscope::test
