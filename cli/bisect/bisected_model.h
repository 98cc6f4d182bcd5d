// The runs that are bisected: their traces, with all elements where a run can be replayed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/replay/replayable.h"
#include "engine/bisect/run_replay.h"
#include "engine/session.h"

namespace trainscope {

// What is trained, by whichever run says so.
struct BisectedModel {
  OnnxModel model;
  CompileOptions compile;
  Schedule schedule;
};

// Of a run of ours: its model and options. Of a trace of ours alone: its options, and the model
// that --model names; of another engine's: the flags of the call. Throws kUsage where that is not
// given.
BisectedModel bisected_model(const Invocation& invocation, const std::string& folder,
                             const std::optional<profiler::Trace>& trace);
// Whether bisected_model() can say it of this folder.
bool knows_model(const std::string& folder);

// The run's steps recorded once more as they ran, with all elements, and what each began with.
// Throws as Replayable and replayed().
profiler::Trace with_elements(const Invocation& invocation, const std::string& folder,
                              const std::vector<std::int64_t>& steps, std::span<const Flag> own,
                              const std::filesystem::path& scratch);

}  // namespace trainscope
