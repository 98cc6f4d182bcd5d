// Plans that the tests make, kept for scripts/check_plan.py: the test plans.check replays them all.
#pragma once

#include <filesystem>

#include "engine/compile.h"

namespace trainscope::test {

// The environment variable that names the folder to keep plans in; without it none is kept.
inline constexpr const char* kKeptPlansVariable = "TRAINSCOPE_KEPT_PLANS";

// The plan of a run's folder with the stages that it is checked against. A folder without a plan is
// passed over.
void keep_plan_of_run(const std::filesystem::path& run);

// `stages`: those that led to the program's graph; none: its graph alone. Programs that use the
// bytes of another one are passed over.
void keep_plan(const Program& program, const Stages& stages = {});
inline void keep_plan(const Compiled& compiled) { keep_plan(compiled.program, compiled.stages); }

}  // namespace trainscope::test
