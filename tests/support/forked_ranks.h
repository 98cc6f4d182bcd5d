// Ranks as processes of their own, forked from a test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "engine/ranks/shared_memory_ranks.h"

namespace trainscope::test {

inline constexpr unsigned kMostRankSeconds = 60;  // a rank that hangs is ended by SIGALRM

struct RanksResult {
  std::vector<int> statuses;  // of each rank, as waitpid() has them
  std::string failure;        // of their channel

  // Each rank found true.
  bool all_true() const {
    for (const int status : statuses) {
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return false;
    }
    return true;
  }
};

// Runs check(rank's end of the channel) in as many processes. Doctest's macros mean nothing there.
inline RanksResult run_ranks(int ranks, const std::function<bool(Communicator&)>& check) {
  const int file = RankMemory::make_file(ranks);
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    alarm(kMostRankSeconds);
    try {
      SharedMemoryRanks channel(file, r, ranks);
      _exit(check(channel) ? 0 : 1);
    } catch (const std::exception&) {
      _exit(2);
    }
  }
  RanksResult result;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    result.statuses.push_back(status);
  }
  {
    const RankMemory memory(file, ranks);
    result.failure = memory.failure();
  }
  close(file);
  return result;
}

}  // namespace trainscope::test
