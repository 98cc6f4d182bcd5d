// Steps of a recorded run once more: for the verbs that look at what they computed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/train_request.h"
#include "cli/source.h"
#include "engine/run/numerics/replay.h"

namespace trainscope {

// A step of a run, what its replay needs, and whether that gives the run's bits.
struct Replayable {
  // `first`: of the steps that are looked at, `last` the other end; `own`: flags of the verb that
  // are none of training. Throws kUsage for a run of several ranks, and where the steps would not
  // have the run's bits, unless --not-bitwise is given.
  Replayable(const Invocation& given, Source run_source, std::int64_t first, std::int64_t last,
             std::span<const Flag> own);

  Source source;
  std::int64_t step;  // the last that runs again
  ReplayStart start;
  std::vector<RunSession> sessions;  // that made the steps, the last first
  Invocation invocation;             // with the options of the first of these
  std::vector<std::string> differences;

  TrainRequest request() const { return train_request(invocation); }
  const RunReader& run() const { return source.run(); }
};

// Throws kUsage where the folder is no run, kBadInput where its model has changed since.
Source run_named(const std::string& folder);

// Says how many steps run again, from where, and what that takes.
void tell_cost(const Replayable& of);

// A signal came, and what was replayed so far is of no use.
struct SignalCame {
  int exit_code;
};

// `scratch`: a folder for the replay's own run. Throws SignalCame, kUsage for data that have
// changed, and what replay() throws.
Replayed replayed(const Replayable& of, NumericsRequest numerics,
                  const std::filesystem::path& scratch);

}  // namespace trainscope
