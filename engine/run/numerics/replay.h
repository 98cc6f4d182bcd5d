// A step of a past run once more, with the tensors that are asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/run/training_run.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

struct ReplayRequest {
  TrainRequest train;     // as the run was trained
  std::int64_t step = 1;  // the last one that is run
  NumericsRequest numerics = {};
  std::filesystem::path scratch;  // a folder for the replay's own run, which need not be there
};

// Where a replay begins: the newest whole checkpoint before the step; without one the model as it
// was given. Or what another run had after `step`, which the replay goes on from.
struct ReplayStart {
  std::filesystem::path checkpoint = {};  // empty: none
  std::int64_t step = 0;
  std::map<std::string, Tensor> tensors = {};  // parameters and states by name; empty: none
};
ReplayStart replay_start(const RunReader& run, std::int64_t step);

struct Replayed {
  std::optional<profiler::Trace> trace;
  std::shared_ptr<const Compiled> compiled;  // what ran
  std::optional<Error> failure;              // kNumeric: the loss was no number
  Json data;                                 // Dataset::description() of what it read
};

// Trains in a run of its own from `start` to the step; the run that is replayed stays as it is.
// `events` hears of it. Throws as TrainingRun, but for a loss that is no number; stopped, it gives
// what there is until then.
Replayed replay(ReplayRequest request, const ReplayStart& start, std::shared_ptr<RunEvents> events,
                std::stop_token stop = {});

// The sessions that made the steps behind `from` up to `to`, the last first: of a step that several
// made, the newest.
std::vector<RunSession> sessions_between(const RunManifest& run, std::int64_t from,
                                         std::int64_t to);

// What keeps a replay in this process from giving the bits of a session: another device, other
// threads, instruction set or program. Empty: nothing.
std::vector<std::string> differences_from(const RunSession& session, const TrainRequest& now);
// What keeps one session's steps from being those of another one: these, and options that are not
// only about records.
std::vector<std::string> differences_between(const RunSession& a, const RunSession& b);

}  // namespace trainscope
