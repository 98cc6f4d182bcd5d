// Which of the runs is to blame, and for what.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/bisect/bisected_model.h"
#include "cli/command.h"
#include "engine/bisect/run_replay.h"

namespace trainscope {

// One of the runs: its trace, and what it is called.
struct BisectedRun {
  std::string name;  // "A"
  std::string folder;
  profiler::IndexedTrace trace;
  std::unordered_map<std::size_t, double> limits = {};  // by row, of what comes before it too
  RunReplay found = {};
};

void replay_side(BisectedRun& side, const DefinedStep& step, const BisectedModel& model,
                 const StartOf& start, const std::vector<std::int64_t>& steps);

// The first fault of all runs; exit code 9 where there is one. `compare`: the command that shows
// what no replay of a run does. Throws kUsage where nothing could be judged.
Outcome verdict(const std::vector<const BisectedRun*>& sides, const std::string& compare);

}  // namespace trainscope
