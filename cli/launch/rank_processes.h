// Processes of this program that are the ranks of one run: started, heard, and ended together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/rank_end.h"
#include "engine/ranks/rank_memory.h"

namespace trainscope {

// What each rank is started with.
struct RankLine {
  std::vector<std::string> words = {};      // behind the program's name
  std::vector<std::string> variables = {};  // "NAME=value", besides what this process has
};

// A line of standard error of a rank other than 0 has "rank R: " before it, and what these write to
// standard output is left out. SIGINT and SIGTERM of this process go to all ranks, which are in
// process groups of their own. One that fails ends the others (rank_end.h): those that wait for it
// see that by themselves, the rest is asked to end after a second, and is killed after ten.
class RankProcesses {
 public:
  // Starts this program so many times. kOutOfMemory, kIo.
  RankProcesses(int ranks, const RankLine& line);
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Until all have ended, whoever else has their standard error. The end that the others follow
  // from; code 0 where all is well.
  RankEnd wait();
  // Why the ranks could not speak to each other; empty: they could.
  std::string channel_failure() const { return memory_.failure(); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    pid_t id = -1;            // -1: it has ended
    int standard_error = -1;  // of a rank other than 0, to be read; -1: closed
    std::string line = {};    // the begin of one that has not ended
  };

  void start(int rank, const RankLine& line);
  bool any_is_left() const;
  void look();
  void pass_on_signals();
  void hear(int rank);
  void hear_rest(int rank);
  void reap();
  void note(const RankEnd& end);
  void end_others();
  void send_to_all(int signal);

  const int file_;
  RankMemory memory_;
  int signals_ = -1;                // a signalfd
  std::vector<Process> processes_;  // by rank
  std::optional<RankEnd> cause_;
  std::optional<Clock::time_point> fault_time_;
  int ending_signal_ = 0;  // the last one that the others were sent because of a fault
};

}  // namespace trainscope
