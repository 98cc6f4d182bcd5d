// `plan` of a model with recomputation, and what it prints.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {

inline const std::string kGpt = test_model("gpt2/model.onnx").string();

// A builder's model: its sizes are open.
inline const std::string kBuilt = "gpt2:124M,layers=3,vocab=300,embedding=64,heads=4";

inline Finished plan(const std::vector<std::string>& more, const TemporaryFolder& folder,
                     const std::string& model = kGpt) {
  std::vector<std::string> words = {"plan", model, "--threads", "1", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words, {}, folder.path());
}

inline Json facts(const std::vector<std::string>& more, const TemporaryFolder& folder,
                  const std::string& model = kGpt) {
  const Finished finished = plan(more, folder, model);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return Json::parse(finished.out);
}

inline std::int64_t peak(const Json& facts) { return facts.get<std::int64_t>("peak_bytes"); }

}  // namespace trainscope::test
