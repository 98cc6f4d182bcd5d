// How an action ends that breaks one of our own invariants: it runs in a process of its own.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>

namespace trainscope::test {

struct Ended {
  enum class By { kReturn, kException, kAbort } by = By::kReturn;
  std::string text;  // of the exception, or written to standard error
};

template <class F>
Ended ended(F action) {
  constexpr int kThrew = 42;
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not doctest's handler
    if (::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(1);
    try {
      action();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      ::_exit(::write(STDERR_FILENO, text.data(), text.size()) < 0 ? 1 : kThrew);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended result;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(ends[0], part.data(), part.size());
    if (got > 0) result.text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
    result.by = Ended::By::kAbort;
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kThrew) {
    result.by = Ended::By::kException;
  } else {
    REQUIRE(status == 0);
  }
  return result;
}

}  // namespace trainscope::test
