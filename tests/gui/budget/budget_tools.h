// Recorded runs to plan anew and to train on, and plans to hold against each other.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/bundle/reader.h"
#include "gui/budget/budget_planner.h"
#include "gui/budget/step_planner.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {

// A run of `steps` steps of GPT-2 in small in the folder "run" of `folder`.
inline RunReader recorded_run(const TemporaryFolder& folder, int steps,
                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"train",
                                    test_model("gpt2/model.onnx").string(),
                                    "--data",
                                    "synthetic",
                                    "--steps",
                                    std::to_string(steps),
                                    "--threads",
                                    "2",
                                    "--seed",
                                    "7",
                                    "--lr",
                                    "1e-2",
                                    "-q",
                                    "--run-dir",
                                    (folder / "run").string()};
  words.insert(words.end(), more.begin(), more.end());
  const Finished finished = run(words, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return RunReader::open(folder / "run");
}

// Until every request that can be answered has its last answer.
inline void wait_for(const gui::BudgetPlanner& planner) {
  const auto is_done = [&planner] {
    const auto state = planner.state();
    return state->phase != gui::BudgetState::Phase::kOpening && !state->planning;
  };
  while (!is_done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
