// Recorded runs to plan anew and to train on, and plans to hold against each other.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/bundle/reader.h"
#include "gui/budget/budget_planner.h"
#include "gui/budget/step_planner.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {

// A run of `steps` steps of a GPT-2 of one layer, as `train` leaves it: planned in milliseconds,
// with memory to trade. Recorded once for all cases of the program that want the same one.
inline const std::filesystem::path& recording(int steps, const std::vector<std::string>& more) {
  static const TemporaryFolder folder;
  static std::map<std::vector<std::string>, std::filesystem::path> recordings;
  const std::string model = (folder / "model.onnx").string();
  if (recordings.empty()) {
    REQUIRE(run({"model", "gpt2", "--layers", "1", "--heads", "2", "--embedding", "16", "--vocab",
                 "32", "--context", "8", "-o", model})
                .exit_code == 0);
  }
  std::vector<std::string> words = {"train",
                                    model,
                                    "--data",
                                    "synthetic",
                                    "--batch",
                                    "4",
                                    "--seq",
                                    "8",
                                    "--lr",
                                    "1e-2",
                                    "--threads",
                                    "2",
                                    "--seed",
                                    "7",
                                    "-q",
                                    "--steps",
                                    std::to_string(steps)};
  for (std::size_t i = 0; i + 1 < more.size(); i += 2) {  // flags with their values
    const auto flag = std::ranges::find(words, more[i]);
    if (flag != words.end()) {
      *(flag + 1) = more[i + 1];
    } else {
      words.insert(words.end(), {more[i], more[i + 1]});
    }
  }
  const auto [entry, is_new] = recordings.try_emplace(words);
  if (is_new) {
    entry->second = folder / std::to_string(recordings.size());
    words.insert(words.end(), {"--run-dir", entry->second.string()});
    const Finished finished = run(words, {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
  }
  return entry->second;
}

// Such a run in the folder "run" of `folder`, to do with whatever a case does.
inline RunReader recorded_run(const TemporaryFolder& folder, int steps,
                              const std::vector<std::string>& more = {}) {
  std::filesystem::copy(recording(steps, more), folder / "run",
                        std::filesystem::copy_options::recursive);
  return RunReader::open(folder / "run");
}

// Whether a request that can be answered has not had its last answer yet.
inline bool is_busy(const gui::BudgetPlanner& planner) {
  const auto state = planner.state();
  return state->phase == gui::BudgetState::Phase::kOpening || state->planning;
}
inline void wait_for(const gui::BudgetPlanner& planner) {
  REQUIRE(wait_until([&planner] { return !is_busy(planner); }));
}

// Where each buffer of a plan lies, in the plan's order: what the rectangles are drawn from.
using Place = std::tuple<std::string, std::string, int, std::uint32_t, std::uint32_t, std::int64_t,
                         std::int64_t>;
inline std::vector<Place> places_of(const PlanView& plan) {
  std::vector<Place> places;
  for (const PlanBuffer& buffer : plan.buffers) {
    places.emplace_back(plan.text(buffer.label), plan.text(buffer.producer),
                        static_cast<int>(buffer.holds), buffer.begin, buffer.end, buffer.offset,
                        buffer.bytes);
  }
  return places;
}

}  // namespace trainscope::test
