// Starts the web server of the tests as a process of its own.
#include "tests/support/http_server.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace trainscope::test {

HttpServer::HttpServer(const std::filesystem::path& folder, const std::filesystem::path& log) {
  // A proxy of the environment would not know this machine's 127.0.0.1.
  setenv("no_proxy", "127.0.0.1", 1);
  const std::string script = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/support/http_server.py";
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    execl("/usr/bin/python3", "python3", script.c_str(), folder.c_str(), log.c_str(), nullptr);
    _exit(127);
  }
  close(pipe_ends[1]);
  char c = 0;
  while (read(pipe_ends[0], &c, 1) == 1 && c != '\n') port_ += c;
  close(pipe_ends[0]);
  REQUIRE(!port_.empty());
}

HttpServer::~HttpServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string HttpServer::url(const std::string& way) const {
  return "http://127.0.0.1:" + port_ + "/" + way;
}

}  // namespace trainscope::test
