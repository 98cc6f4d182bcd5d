// Runs with a record of their numbers, for tests that compare, bisect and look at them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program_runner.h"

namespace trainscope::test {

// Trains a model of tests/data/models on synthetic data, at a rate of 0.001 unless `flags` have
// another one; returns the run's folder, `to`.
inline std::string record(int steps, const std::string& model, const std::filesystem::path& to,
                          const std::vector<std::string>& flags = {}) {
  std::vector<std::string> words = {"train",     test_model(model + "/model.onnx").string(),
                                    "--data",    "synthetic",
                                    "--steps",   std::to_string(steps),
                                    "--quiet",   "--record-numerics",
                                    "--run-dir", to.string()};
  if (std::ranges::find(flags, "--lr") == flags.end()) words.insert(words.end(), {"--lr", "0.001"});
  words.insert(words.end(), flags.begin(), flags.end());
  const Finished finished = run(words);
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  return to.string();
}

}  // namespace trainscope::test
