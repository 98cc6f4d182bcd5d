// Losses, optimizers, schedules and evaluation from the command line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "engine/bundle/reader.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

std::vector<std::string> train(const std::vector<std::string>& more) {
  // 16 of 18 examples train: one batch, whose loss falls.
  std::vector<std::string> words = {"train",   kMlp,        "--data",    "synthetic,examples=18",
                                    "--steps", "6",         "--threads", "1",
                                    "-q",      "--run-dir", "r"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The learning rates that a run of 6 steps used.
std::vector<double> rates(const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const Finished finished = run(train(more), {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  std::vector<double> list;
  for (const StepRecord& step : RunReader::open(folder / "r").metrics().steps) {
    list.push_back(step.learning_rate);
  }
  return list;
}

void check_near(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]));
}

TEST_CASE("schedules: each flag arrives") {
  check_near(rates({"--lr", "1", "--schedule", "linear", "--warmup", "2", "--min-lr", "0.2"}),
             {0.5, 1.0, 0.8, 0.6, 0.4, 0.2});
  check_near(rates({"--lr", "1", "--schedule", "polynomial", "--power", "2"}),
             {25.0 / 36, 16.0 / 36, 9.0 / 36, 4.0 / 36, 1.0 / 36, 0.0});
  check_near(rates({"--lr", "1", "--schedule", "step", "--step-size", "2", "--gamma", "0.5"}),
             {1.0, 1.0, 0.5, 0.5, 0.25, 0.25});
  check_near(rates({"--lr", "1", "--schedule", "one_cycle", "--rising-share", "0.5", "--div-factor",
                    "10", "--final-div-factor", "100"}),
             {0.1, 0.55, 1.0, 0.75025, 0.25075, 0.001});
}

TEST_CASE("optimizers: each trains, with flags of its own") {
  const std::vector<std::vector<std::string>> cases = {
      {"--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--lr", "0.05"},
      {"--optimizer", "adam", "--weight-decay", "0.01"},
      {"--optimizer", "adamw", "--no-bias-correction"},
      {"--optimizer", "adamw_hf", "--eps", "1e-6", "--weight-decay", "0.01"},
      {"--optimizer", "lamb", "--ratio-limits", "0.1,10", "--lr", "0.01"},
      {"--group", "*.bias:lr=1e-4,weight_decay=0", "--group", "0.*:lr_scale=0.5"}};
  std::vector<std::string> models;
  for (const std::vector<std::string>& words : cases) {
    INFO(words[1]);
    const TemporaryFolder folder;
    const Finished finished = run(train(words), {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    const std::vector<StepRecord> steps = RunReader::open(folder / "r").metrics().steps;
    CHECK(steps.back().loss < steps.front().loss);
    models.push_back(read_text(folder / "r/model.onnx"));
  }
  std::ranges::sort(models);
  CHECK(std::ranges::adjacent_find(models) == models.end());  // each went its own way
}

TEST_CASE("losses: class weights, label smoothing and l1 change the training") {
  const TemporaryFolder folder;
  std::ofstream(folder / "weights.txt") << "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
  const auto first_loss = [&](const std::string& loss) {
    fs::remove_all(folder / "r");
    const Finished finished = run(train({"--loss", loss, "--json"}), {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished.json().get<double>("first_loss");
  };
  const double plain = first_loss("cross_entropy");
  CHECK(first_loss("cross_entropy:weights=1:1:1:1:1:1:1:1:1:1") == doctest::Approx(plain));
  const double weighted = first_loss("cross_entropy:weights=1:2:3:4:5:6:7:8:9:10");
  CHECK(weighted != plain);
  CHECK(first_loss("cross_entropy:weights=weights.txt") == weighted);
  CHECK(first_loss("cross_entropy:label_smoothing=0.1") != plain);
  CHECK(first_loss("l1") < 2.0);
}

TEST_CASE("losses: a model that computes its own is trained by output:NAME") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> own (float[N,4] x) => (float[N,4] y, float total)"
      " <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { y = MatMul(x, w)"
      " s = Mul(y, y)  total = ReduceMean <keepdims = 0> (s) }",
      folder / "own.onnx");
  const Finished finished =
      run({"train", "own.onnx", "--data", "synthetic,examples=9", "--loss", "output:total",
           "--steps", "5", "--lr", "0.1", "--run-dir", "r", "--json", "-q"},
          {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json json = finished.json();
  CHECK(json.get<double>("last_loss") < json.get<double>("first_loss"));
  CHECK(json.at("validation").at("accuracy").is_null());
  const Finished evaluated = run({"eval", "r", "--json"}, {}, folder.path());
  CHECK(evaluated.json().get<double>("loss") == json.at("validation").get<double>("loss"));
  CHECK(!evaluated.json().contains("accuracy"));
}

TEST_CASE("eval: accuracy and perplexity of losses over classes, and in the run's records") {
  const TemporaryFolder folder;
  const Finished finished = run(train({"--eval-every", "3", "--json"}), {}, folder.path());
  REQUIRE(finished.exit_code == 0);
  const double accuracy = finished.json().at("validation").get<double>("accuracy");
  CHECK(accuracy >= 0.0);
  CHECK(accuracy <= 1.0);
  const std::vector<EvaluationRecord> records = RunReader::open(folder / "r").metrics().evaluations;
  REQUIRE(records.size() == 2);
  CHECK(records.back().accuracy == accuracy);
  const Json facts = run({"eval", "r", "--json"}, {}, folder.path()).json();
  CHECK(facts.get<double>("accuracy") == accuracy);
  CHECK(facts.get<double>("perplexity") == doctest::Approx(std::exp(facts.get<double>("loss"))));
  const Finished text = run({"eval", "r"}, {}, folder.path());
  CHECK(text.out.find("accuracy    ") != std::string::npos);
  CHECK(text.out.find(" labels\nperplexity  ") != std::string::npos);
  // Smoothed or weighted, a loss is no likelihood.
  const Json smooth =
      run({"eval", "r", "--loss", "cross_entropy:label_smoothing=0.1", "--json"}, {}, folder.path())
          .json();
  CHECK(!smooth.contains("perplexity"));
  CHECK(smooth.get<double>("accuracy") == accuracy);
}

}  // namespace
}  // namespace trainscope::test
