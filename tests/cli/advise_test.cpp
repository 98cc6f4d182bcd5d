// advise and bench --node on small models: predictions that hold, commands that can be given.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

// Small models whose batch is open, made once.
class Models {
 public:
  Models() {
    make({"model", "mlp", "--dims", "16,32,4", "-o", mlp()});
    make({"model", "gpt2", "--layers", "2", "--heads", "2", "--embedding", "32", "--vocab", "64",
          "--context", "16", "-o", gpt()});
  }
  std::string mlp() const { return (folder_ / "mlp.onnx").string(); }
  std::string gpt() const { return (folder_ / "gpt.onnx").string(); }

 private:
  static void make(const std::vector<std::string>& words) { REQUIRE(run(words).exit_code == 0); }
  TemporaryFolder folder_;
};
const Models& models() {
  static const Models kModels;
  return kModels;
}

Json advice(std::vector<std::string> words) {
  words.insert(words.begin(), "advise");
  words.insert(words.end(), {"--threads", "1", "--json"});
  const Finished finished = run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

// Of eight examples of the gpt, asked for once.
const Json& gpt_advice() {
  static const Json kAdvice = advice({models().gpt(), "--batch", "8", "--seq", "16"});
  return kAdvice;
}

// Words of a command without quotes, after the program and its verb.
std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  REQUIRE(words.size() > 2);
  REQUIRE(words[0] == "trainscope");
  REQUIRE(words[1] == "train");
  return {words.begin() + 2, words.end()};
}

TEST_CASE("advise: reasons, and levers in the order of their gains") {
  const Json& facts = gpt_advice();
  CHECK(facts.array_at("why_this_peak").size() == 3);
  CHECK(facts.array_at("why_this_time").size() == 3);
  CHECK(facts.get<std::string>("headline").starts_with("advise: a step of 8 examples needs "));
  double gain = 1e300;
  std::set<std::string> names;
  for (const Json& lever : facts.array_at("levers")) {
    CHECK(lever.get<double>("gain") <= gain);
    gain = lever.get<double>("gain");
    CHECK(lever.get<double>("ms") > 0.0);
    CHECK(lever.get<std::int64_t>("arena_bytes") > 0);
    CHECK(!lever.get<std::string>("cost").empty());
    names.insert(lever.get<std::string>("name"));
  }
  for (const Json& lever : facts.array_at("left_out")) {
    CHECK(!lever.get<std::string>("why_not").empty());
    names.insert(lever.get<std::string>("name"));
  }
  for (const char* name :
       {"memory budget", "recompute", "loss chunks", "optimizer in backward", "2 micro-batches",
        "bf16", "offload", "masked-label compaction", "twice the batch", "threads"}) {
    CHECK_MESSAGE(names.contains(name), name);
  }
}

TEST_CASE("advise: a lever's command has the plan that was predicted") {
  for (const Json& lever : gpt_advice().array_at("levers")) {
    std::vector<std::string> words = words_of(lever.get<std::string>("command"));
    words.insert(words.begin(), "train");
    words.insert(words.end(), {"--dry-run", "--json"});
    const Finished finished = run(words);
    INFO(lever.get<std::string>("command"));
    REQUIRE_MESSAGE(finished.exit_code == 0, finished.err);
    CHECK(finished.json().get<std::int64_t>("predicted_bytes") ==
          lever.get<std::int64_t>("arena_bytes"));
  }
}

TEST_CASE("advise: what is tried uses the bytes that were planned") {
  const Json facts = advice({models().mlp(), "--batch", "16", "--try", "3"});
  int tried = 0;
  for (const Json& lever : facts.array_at("levers")) {
    const Json* trial = lever.find("trial");
    if (trial == nullptr) continue;
    ++tried;
    CHECK(trial->get<bool>("bytes_as_planned"));
    CHECK(trial->get<double>("ms") > 0.0);
    CHECK(trial->get<double>("base_ms") > 0.0);
  }
  CHECK(tried == 3);
}

TEST_CASE("advise: with a memory to fit in, what fits comes first, the quickest of it at the top") {
  const auto plain = gpt_advice().get<std::int64_t>("arena_bytes");
  const Json facts = advice(
      {models().gpt(), "--batch", "8", "--seq", "16", "--memory", std::to_string(plain * 4 / 5)});
  bool fits = true;
  double ms = 0.0;
  int fitting = 0;
  for (const Json& lever : facts.array_at("levers")) {
    const bool is_in = lever.get<std::int64_t>("arena_bytes") <= plain * 4 / 5;
    CHECK(is_in == lever.get<bool>("fits"));
    CHECK((fits || !is_in));
    fits = is_in;
    fitting += is_in ? 1 : 0;
    if (is_in) CHECK(lever.get<double>("ms_an_example") >= ms);
    if (is_in) ms = lever.get<double>("ms_an_example");
  }
  CHECK(fitting >= 3);
}

TEST_CASE("advise: a run's own profile is what its step takes") {
  const TemporaryFolder folder;
  const Finished trained = run({"profile", models().mlp(), "--data", "synthetic", "--steps", "6",
                                "--profile", "steps=3:6", "--threads", "1", "-q", "--run-dir", "r"},
                               {}, folder.path());
  REQUIRE(trained.exit_code == 0);
  const Finished advised = run({"advise", "r", "--json"}, {}, folder.path());
  REQUIRE_MESSAGE(advised.exit_code == 0, advised.err);
  const Json facts = advised.json();
  CHECK(facts.get<std::string>("times_from") == "the run's profile");
  CHECK(facts.get<std::int64_t>("steps") == 4);
  const Finished text = run({"advise", "r"}, {}, folder.path());
  CHECK(text.out.starts_with("advise: a step of 8 examples needs "));
  CHECK(text.out.find("--config r/config.toml") != std::string::npos);
  // Another step than that of the run has no profile.
  const Finished other = run({"advise", "r", "--batch", "4", "--json"}, {}, folder.path());
  REQUIRE(other.exit_code == 0);
  CHECK(other.json().get<std::string>("times_from") == "steps run now");
}

TEST_CASE("advise: of a builder's model nothing is run") {
  const Json facts = advice({"mlp", "--batch", "16"});
  CHECK(facts.get<std::string>("times_from").starts_with("a model of the machine"));
  const Finished tried = run({"advise", "mlp", "--batch", "16", "--try", "1"});
  CHECK(tried.exit_code == 2);
  CHECK(tried.err.starts_with("error: --try runs steps"));
  CHECK(run({"advise", models().mlp(), "--memory", "much"}).exit_code == 2);
}

TEST_CASE("bench --node: the kernels of a node's calls, and why others do not take them") {
  const Finished finished = run(
      {"bench", models().mlp(), "--node", "/0/Gemm", "--batch", "16", "--threads", "1", "--json"});
  REQUIRE_MESSAGE(finished.exit_code == 0, finished.err);
  const Json facts = finished.json();
  std::set<std::string> phases;
  for (const Json& call : facts.array_at("calls")) {
    CHECK(call.get<std::string>("node") == "/0/Gemm");
    phases.insert(call.get<std::string>("phase"));
    int chosen = 0;
    for (const Json& kernel : call.array_at("kernels")) {
      chosen += kernel.get<bool>("chosen") ? 1 : 0;
      if (kernel.get<bool>("supported")) {
        CHECK(kernel.get<double>("ms") > 0.0);
        CHECK(kernel.get<double>("ms") >= kernel.get<double>("ms_least"));
      } else {
        CHECK(!kernel.get<std::string>("why_not").empty());
      }
    }
    CHECK(chosen == 1);
  }
  CHECK(phases.contains("forward"));
  CHECK(phases.contains("backward"));
  const Finished text = run({"bench", models().mlp(), "--node", "/0/Gemm", "--phase", "forward"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("backward") == std::string::npos);
  const Finished wrong = run({"bench", models().mlp(), "--node", "/0/Gem"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("did you mean '/0/Gemm'?") != std::string::npos);
}

}  // namespace
}  // namespace trainscope::test
