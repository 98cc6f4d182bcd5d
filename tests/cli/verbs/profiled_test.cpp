// What a profiled run tells on the command line: memory that was measured, and any range of time.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

// Two micro-batches a step, on two threads, with batch tiles, steps 2 and 3 of three profiled.
std::string profiled_run(const TemporaryFolder& folder) {
  const std::string path = (folder / "run").string();
  const Finished finished =
      run({"train", test_model("gpt2/model.onnx").string(), "--data", "synthetic", "--steps", "3",
           "--accumulate", "2", "--threads", "2", "--batch-tiles", "auto", "--profile", "steps=2:3",
           "-q", "--run-dir", path});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return path;
}

Json json_of(std::vector<std::string> words) {
  words.emplace_back("--json");
  const Finished finished = run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

TEST_CASE("inspect --memory: what a profiled step had bound is what the plan has alive") {
  const TemporaryFolder folder;
  const std::string path = profiled_run(folder);
  const Json peak = json_of({"inspect", path, "--memory"});
  const Json& measured = peak.at("measured");
  CHECK(measured.get<std::int64_t>("bound_bytes") == peak.get<std::int64_t>("live_bytes"));
  CHECK(measured.get<std::int64_t>("most_bound_bytes") ==
        peak.get<std::int64_t>("peak_live_bytes"));
  REQUIRE(measured.array_at("resident").size() == 2);
  CHECK(measured.at("resident").at(0).get<int>("step") == 2);
  CHECK(measured.at("resident").at(1).get<std::int64_t>("bytes") >
        peak.get<std::int64_t>("arena_bytes"));
  const auto calls = json_of({"plan", path}).get<std::int64_t>("call_count");
  for (std::int64_t call = 0; call < calls; call += 7) {
    CAPTURE(call);
    const Json there = json_of({"inspect", path, "--memory", "--at", std::to_string(call)});
    CHECK(there.at("measured").get<std::int64_t>("bound_bytes") ==
          there.get<std::int64_t>("live_bytes"));
  }
  CHECK(run({"inspect", path, "--memory"}).out.find("bytes bound here") != std::string::npos);
  const Json model = json_of({"inspect", test_model("gpt2/model.onnx").string(), "--memory"});
  CHECK(model.at("measured").is_null());
}

TEST_CASE("query --range: from one nanosecond of the profile to another") {
  const TemporaryFolder folder;
  const std::string path = profiled_run(folder);
  const std::string all = "0:1000000000000";
  const Json ops = json_of({"query", path, "--by", "op", "--range", all});
  const Json phases = json_of({"query", path, "--by", "phase", "--range", all});
  CHECK(ops.get<std::int64_t>("spans_ns") == phases.get<std::int64_t>("spans_ns"));
  CHECK(ops.array_at("rows").size() > phases.array_at("rows").size());
  CHECK(json_of({"query", path, "--range", all, "--top", "2"}).array_at("rows").size() == 2);
  CHECK(json_of({"query", path, "--range", "1:2"}).get<std::int64_t>("range_ns") == 1);
  CHECK(run({"query", path, "--by", "op", "--range", all}).out.find("of the driving thread") !=
        std::string::npos);

  using Flags = std::vector<std::string>;
  for (const char* range : {"", "5", "5:", ":5", "5:5", "7:5", "a:b", "1:2:3"}) {
    CAPTURE(range);
    const Finished refused = run({"query", path, "--range", range});
    CHECK(refused.exit_code == 2);
  }
  for (const Flags& more : {Flags{"op==MatMul"}, Flags{"--sort", "ms"}, Flags{"--csv"},
                            Flags{"--by", "thread"}, Flags{"--by", "step"}}) {
    CAPTURE(more[0]);
    Flags words = {"query", path, "--range", all};
    words.insert(words.end(), more.begin(), more.end());
    const Finished refused = run(words);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("--range") != std::string::npos);
  }
}

}  // namespace
}  // namespace trainscope::test
