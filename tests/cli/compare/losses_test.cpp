// compare's sections besides tensors, on runs: loss curves with the test that they allow, bytes,
// kernels.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

std::string train(const std::string& model, const std::filesystem::path& to,
                  const std::vector<std::string>& flags = {}) {
  std::vector<std::string> words = {"train",    test_model(model + "/model.onnx").string(),
                                    "--data",   "synthetic,examples=64",
                                    "--steps",  "40",
                                    "--quiet",  "--run-dir",
                                    to.string()};
  words.insert(words.end(), flags.begin(), flags.end());
  const bool has_rate = std::ranges::find(flags, "--lr") != flags.end();
  if (!has_rate) words.insert(words.end(), {"--lr", "0.001"});
  const Finished finished = run(words);
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  return to.string();
}

Json losses_of_both(const std::string& a, const std::string& b, int exit_code) {
  const Finished both = run({"compare", a, b, "--only", "loss", "--json"});
  CAPTURE(both.out);
  CAPTURE(both.err);
  REQUIRE(both.exit_code == exit_code);
  return both.json();
}

TEST_CASE("compare: losses of one seed are the same within 1e-5, whatever the threads") {
  const TemporaryFolder folder;
  const std::string a = train("gpt2", folder / "a", {"--threads", "1"});
  const std::string b = train("gpt2", folder / "b", {"--threads", "2"});
  const Json facts = losses_of_both(a, b, 0);
  CHECK(facts.at("test").as_string() == "same_seed");
  CHECK_FALSE(facts.at("differs").as_bool());
  const Json& training = facts.at("pairs").at(0).at("training");
  CHECK(training.at("steps").as_int() == 40);
  CHECK(training.at("first").is_null());
  CHECK(training.at("largest").at("relative").as_number() < 1e-5);
}

TEST_CASE("compare: another learning rate differs from the second step on, and is exit code 9") {
  const TemporaryFolder folder;
  const std::string a = train("mlp", folder / "a");
  const std::string b = train("mlp", folder / "b", {"--lr", "0.002"});
  const Json facts = losses_of_both(a, b, 9);
  CHECK(facts.at("pairs").at(0).at("training").at("first").at("step").as_int() == 2);
  // Every section at once: nothing but the loss differs.
  const Finished all = run({"compare", a, b, "--json"});
  CHECK(all.exit_code == 9);
  CHECK(all.json().at("loss").at("differs").as_bool());
  CHECK(all.json().at("bytes").at("differing").as_int() == 0);
  CHECK(all.json().at("plan").at("differing").as_int() == 0);
}

TEST_CASE("compare: one run a side of other seeds says nothing, and that is said") {
  const TemporaryFolder folder;
  const std::string a = train("mlp", folder / "a");
  const std::string b = train("mlp", folder / "b", {"--seed", "5"});
  const Json facts = losses_of_both(a, b, 0);
  CHECK(facts.at("test").as_string() == "none");
  CHECK(text_has(facts.at("reason").as_string(), "A1,A2,A3"));
}

TEST_CASE("compare: other models and batches are not tested") {
  const TemporaryFolder folder;
  const std::string a = train("mlp", folder / "a");
  CHECK(text_has(losses_of_both(a, train("lenet", folder / "b"), 0).at("reason").as_string(),
                 "models"));
  CHECK(text_has(losses_of_both(a, train("mlp", folder / "c", {"--accumulate", "2"}), 0)
                     .at("reason")
                     .as_string(),
                 "examples"));
}

TEST_CASE("compare: several runs of other seeds a side, by Welch's test") {
  const TemporaryFolder folder;
  std::string sides[3];
  for (int seed = 1; seed <= 12; ++seed) {
    const int side = (seed - 1) / 4;
    const std::string to = (folder / ("run" + std::to_string(seed))).string();
    train("mlp", to, {"--seed", std::to_string(seed), "--lr", side == 2 ? "0.003" : "0.0001"});
    sides[side] += (sides[side].empty() ? "" : ",") + to;
  }
  const Json same = losses_of_both(sides[0], sides[1], 0);
  CHECK(same.at("test").as_string() == "welch");
  CHECK(same.at("steps").as_int() == 40);
  CHECK(same.at("windows").as_array().size() == 10);
  const Json other = losses_of_both(sides[0], sides[2], 9);
  CHECK(other.at("differs").as_bool());
  CHECK(other.at("first").at("p").as_number() < 1e-3);
}

TEST_CASE("compare: the same seeds on both sides are held against each other in pairs") {
  const TemporaryFolder folder;
  std::string a;
  std::string b;
  for (const std::string seed : {"1", "2"}) {
    a += (a.empty() ? "" : ",") + train("mlp", folder / ("a" + seed), {"--seed", seed});
    b = train("mlp", folder / ("b" + seed), {"--seed", seed}) + (b.empty() ? "" : "," + b);
  }
  const Json facts = losses_of_both(a, b, 0);
  CHECK(facts.at("test").as_string() == "same_seed");
  CHECK(facts.at("pairs").as_array().size() == 2);
}

TEST_CASE("compare: bytes and kernels of nodes are sections") {
  const TemporaryFolder folder;
  const std::string a = train("lenet", folder / "a");
  const std::string b = train("lenet", folder / "b", {"--kernels", "reference"});
  const Finished plan = run({"compare", a, b, "--only", "plan", "--json"});
  CHECK(plan.exit_code == 0);
  CHECK(plan.json().at("differing").as_int() > 0);
  CHECK(plan.json().at("rows").at(0).at("a").at("kernels").as_string() !=
        plan.json().at("rows").at(0).at("b").at("kernels").as_string());
  const Finished bytes = run({"compare", a, a, "--only", "bytes", "--json"});
  CHECK(bytes.exit_code == 0);
  CHECK(bytes.json().at("arena_a").as_int() > 0);
  CHECK(bytes.json().at("differing").as_int() == 0);
  CHECK(text_has(run({"compare", a, a, "--only", "bytes"}).out, "as many bytes in both"));
}

TEST_CASE("compare: a section that a run lacks is refused by name") {
  const TemporaryFolder folder;
  const std::string a = train("mlp", folder / "a");
  const std::string torch =
      std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/mlp-onnxruntime";
  const Finished losses = run({"compare", a, torch, "--only", "loss"});
  CHECK(losses.exit_code == 2);
  CHECK(text_has(losses.err, "has no losses"));
  const Finished tensors = run({"compare", a, torch, "--only", "tensors"});
  CHECK(tensors.exit_code == 2);
  CHECK(text_has(tensors.err, "has no trace of its numbers"));
}

TEST_CASE("compare: losses of runs without a common step are not tested, nor said to agree") {
  const TemporaryFolder folder;
  const std::string a = train("mlp", folder / "a", {"--save-every", "20"});
  const std::string b = (folder / "b").string();
  const Finished later = run({"train", "--resume", a + "/checkpoints/step-00000040", "--steps",
                              "44", "--run-dir", b, "--quiet"});
  CAPTURE(later.err);
  REQUIRE(later.exit_code == 0);
  const Json facts = losses_of_both(a, b, 0);
  CHECK(facts.at("test").as_string() == "none");
  CHECK(facts.at("reason").as_string() == "they have no step in common");
  CHECK(facts.at("differs").is_null());
}

TEST_CASE("compare: losses of another engine's trace of another model are not tested") {
  const TemporaryFolder folder;
  const std::string a = train("lenet", folder / "a");
  const std::string torch = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/mlp-pytorch";
  for (const std::string& other : {torch, torch + "," + torch}) {
    const Json facts = losses_of_both(a, other, 0);
    CHECK(facts.at("test").as_string() == "none");
    CHECK(facts.at("reason").as_string() == "the models are others");
  }
}

}  // namespace
}  // namespace trainscope::test
