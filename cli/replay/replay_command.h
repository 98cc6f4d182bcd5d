// What the verbs share that run steps of a run again: train's flags behind their own, one that lets
// last bits differ, and how they end when a signal comes.
#pragma once

#include <functional>
#include <span>

#include "cli/command.h"

namespace trainscope {

// One of each such verb's own flags: Replayable reads it.
inline constexpr Flag kNotBitwiseFlag{
    .name = "not-bitwise",
    .type = FlagType::kSwitch,
    .help = "Also with other threads, another instruction set or program: other last bits"};

// The command of such a verb but for its words; configuration files have it in the table of train.
Command replay_command(std::span<const Flag> own, Outcome (*run)(const Invocation&));

// What `run` gives; where it throws SignalCame, that it was stopped.
Outcome unless_stopped(const std::function<Outcome()>& run);

}  // namespace trainscope
