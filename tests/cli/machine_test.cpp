// doctor --roofs, and --machine of what it writes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "engine/machine/machine_file.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

const std::string kGpt = test_model("gpt2/model.onnx").string();
const std::string kMlp = test_model("mlp/model.onnx").string();

Finished plan(const TemporaryFolder& folder, std::vector<std::string> more,
              const std::map<std::string, std::string>& variables = {}) {
  std::vector<std::string> words = {"plan", kGpt, "--threads", "1", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words, variables, folder.path());
}

double overhead(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json().at("recompute").get<double>("overhead");
}

// The built-in machine, but for what f32 reaches.
void write_slow_arithmetic(const std::filesystem::path& path) {
  Machine machine = default_machine();
  machine.name = "slow arithmetic";
  machine.flops_per_second[DType::kF32] = {.one = 1e8, .all = 2e8};
  write_machine(path, machine);
}

}  // namespace

TEST_CASE("doctor --roofs: a table, and a file that --machine takes") {
  const TemporaryFolder folder;
  const std::vector<std::string> quick = {"doctor",         "--roofs", "--threads",     "1",
                                          "--roof-seconds", "0.001",   "--roof-memory", "16MiB"};
  std::vector<std::string> words = quick;
  words.insert(words.end(), {"--out", "m.json", "--json"});
  const Finished finished = run(words, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Machine written = read_machine(folder / "m.json");
  CHECK(machine_of(finished.json().at("machine")) == written);
  CHECK(!written.name.empty());
  CHECK(written.cores == 1);
  const std::string text = run(quick, {}, folder.path()).out;
  for (const char* row :
       {"GB/s", "L1", "memory", "copy", "update", "GFLOP/s", "f32", "f64", "a fork"}) {
    CAPTURE(row);
    CHECK(text.find(row) != std::string::npos);
  }
  CHECK(plan(folder, {"--memory-budget", "700000", "--machine", "m.json"}).exit_code == 0);
}

TEST_CASE("doctor --roofs: its flags need it") {
  const TemporaryFolder folder;
  const Finished finished = run({"doctor", "--out", "m.json"}, {}, folder.path());
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.find("--out needs --roofs") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "m.json"));
}

TEST_CASE("--machine: what recomputation costs follows it, from the environment too") {
  const TemporaryFolder folder;
  write_machine(folder / "same.json", default_machine());
  write_slow_arithmetic(folder / "slow.json");
  const std::vector<std::string> budget = {"--memory-budget", "700000"};
  const double built_in = overhead(plan(folder, budget));
  CHECK(overhead(plan(folder, {budget[0], budget[1], "--machine", "same.json"})) == built_in);
  const double slow = overhead(plan(folder, {budget[0], budget[1], "--machine", "slow.json"}));
  CHECK(slow != built_in);
  CHECK(overhead(plan(folder, budget, {{"TRAINSCOPE_MACHINE", "slow.json"}})) == slow);
}

TEST_CASE("--machine: a bad file is one error that names key and file") {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.json") << R"({"format":"trainscope-machine","version":1,"cores":2})";
  const Finished bad = plan(folder, {"--machine", "m.json"});
  CHECK(bad.exit_code == 3);
  CHECK(bad.err.find("'name' is missing") != std::string::npos);
  CHECK(bad.err.find("m.json") != std::string::npos);
  CHECK(plan(folder, {"--machine", "none.json"}).exit_code == 6);
  const Finished world = plan(folder, {"--machine", "m.json", "--target", "h200"});
  CHECK(world.exit_code == 2);
  CHECK(world.err.find("--machine is for this machine") != std::string::npos);
}

TEST_CASE("--machine: train and bench take it, and the run records it") {
  const TemporaryFolder folder;
  write_slow_arithmetic(folder / "slow.json");
  const Finished trained =
      run({"train", kMlp, "--data", "synthetic,examples=18", "--steps", "2", "--threads", "2", "-q",
           "--run-dir", "r", "--machine", "slow.json", "--op-chains", "auto"},
          {}, folder.path());
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Json manifest = read_json_file(folder / "r/manifest.json");
  CHECK(manifest.at("options").get<std::string>("machine") == "slow.json");
  CHECK(machine_of(manifest.at("machine")).name == "slow arithmetic");
  REQUIRE(run({"train", kMlp, "--data", "synthetic,examples=18", "--steps", "2", "-q", "--run-dir",
               "plain"},
              {}, folder.path())
              .exit_code == 0);
  CHECK(!read_json_file(folder / "plain/manifest.json").contains("machine"));
  // Each session has its own; what plans are made again from is the newest one's.
  REQUIRE(run({"train", kMlp, "--data", "synthetic,examples=18", "--steps", "3", "-q", "--run-dir",
               "plain", "--resume", "auto", "--machine", "slow.json", "--op-order", "given"},
              {}, folder.path())
              .exit_code == 0);
  const Json resumed = read_json_file(folder / "plain/manifest.json");
  CHECK(machine_of(resumed.at("machine")).name == "slow arithmetic");
  CHECK(resumed.at("options").get<std::string>("op-order") == "given");
  CHECK(!resumed.array_at("sessions")[0].contains("machine"));
  CHECK(resumed.array_at("sessions")[0].at("options").get<std::string>("op-order") == "memory");
  CHECK(machine_of(resumed.array_at("sessions")[1].at("machine")).name == "slow arithmetic");
  const Finished bench = run({"bench", "w2-lenet", "--steps", "1", "--batch", "4", "--threads", "1",
                              "--machine", "slow.json", "--json"},
                             {}, folder.path());
  INFO(bench.err);
  REQUIRE(bench.exit_code == 0);
  CHECK(bench.json().get<std::string>("machine") == "slow arithmetic");
}

}  // namespace trainscope::test
