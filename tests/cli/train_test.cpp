// train from end to end: the run's folder, resume bit for bit, signals.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "engine/bundle/reader.h"
#include "engine/session.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

std::vector<std::string> train(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train",  kMlp,          "--data",    "synthetic", "--seed",
                                    "3",      "--optimizer", "adamw",     "--lr",      "1e-2",
                                    "--clip", "1",           "--threads", "1",         "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string checkpoint(int step, const std::string& file) {
  return fmt::format("checkpoints/step-{:08}/{}.safetensors", step, file);
}

// Trained model, optimizer and losses of two runs are the same bits.
void check_same(const fs::path& a, const fs::path& b, int steps) {
  CHECK(read_text(a / "model.onnx") == read_text(b / "model.onnx"));
  for (const char* file : {"model", "optimizer"}) {
    CHECK(read_text(a / checkpoint(steps, file)) == read_text(b / checkpoint(steps, file)));
  }
  const Metrics left = RunReader::open(a).metrics();
  const Metrics right = RunReader::open(b).metrics();
  REQUIRE(left.steps.size() == right.steps.size());
  for (std::size_t i = 0; i < left.steps.size(); ++i) {
    CHECK(left.steps[i].step == right.steps[i].step);
    CHECK(left.steps[i].loss == right.steps[i].loss);
  }
}

TEST_CASE("train: writes everything that a run's folder holds") {
  const TemporaryFolder folder;
  const Finished finished =
      run(train({"--steps", "12", "--save-every", "5", "--keep", "2", "--eval-every", "4",
                 "--run-dir", "r", "--export", "copy.onnx", "--json"}),
          {}, folder.path());
  REQUIRE(finished.exit_code == 0);
  const Json summary = finished.json();
  CHECK(summary.get<int>("step") == 12);
  CHECK(summary.get<std::string>("status") == "finished");
  CHECK(summary.get<std::int64_t>("predicted_bytes") == summary.get<std::int64_t>("used_bytes"));
  CHECK(summary.at("validation").get<int>("examples") == 52);

  const RunReader run_folder = RunReader::open(folder / "r");
  const Metrics metrics = run_folder.metrics();
  CHECK(metrics.steps.size() == 12);
  REQUIRE(metrics.evaluations.size() == 3);
  CHECK(metrics.evaluations.back().step == 12);
  CHECK(metrics.steps.front().gradient_norm > 0.0);  // because of --clip
  CHECK(run_folder.plan()->view().arena().bytes == summary.get<std::int64_t>("used_bytes"));
  CHECK(run_folder.stages().front().name == "imported");
  for (const StageRecord& stage : run_folder.stages()) {
    CHECK(run_folder.open_stage(stage).size_bytes() > 0);
  }
  const RunManifest& manifest = run_folder.manifest();
  CHECK(manifest.seed == 3);
  CHECK(manifest.options.get<int>("steps") == 12);
  CHECK(manifest.options.get<int>("batch") == 16);
  CHECK(manifest.sessions.back().status == RunStatus::kFinished);
  CHECK(manifest.sessions.back().command[1] == "train");
  CHECK(fs::exists(folder / "r/checkpoints/step-00000012"));
  CHECK(fs::exists(folder / "r/checkpoints/step-00000010"));
  CHECK(!fs::exists(folder / "r/checkpoints/step-00000005"));  // --keep 2
  CHECK(read_text(folder / "r/config.toml").find("steps = 12\n") != std::string::npos);
  CHECK(!read_text(folder / "r/log.jsonl").empty());
  CHECK(read_text(folder / "copy.onnx") == read_text(folder / "r/model.onnx"));
}

TEST_CASE("train: the same command gives the same bits") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    REQUIRE(run(train({"--steps", "8", "--run-dir", name}), {}, folder.path()).exit_code == 0);
  }
  check_same(folder / "a", folder / "b", 8);
}

TEST_CASE("train: a run numbers itself, in folders of their own") {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(run(train({"--steps", "1"}), {}, folder.path()).exit_code == 0);
  }
  CHECK(fs::exists(folder / "runs/mlp-1/model.onnx"));
  CHECK(fs::exists(folder / "runs/mlp-2/model.onnx"));
}

TEST_CASE("train: resumed equals uninterrupted, bit for bit") {
  const TemporaryFolder folder;
  const std::vector<std::string> whole = {"--steps",  "15", "--schedule",   "cosine",
                                          "--warmup", "4",  "--accumulate", "2"};
  const auto words = [&whole](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = train(whole);
    all.insert(all.end(), {"--run-dir", name});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  REQUIRE(run(words("a", {"--save-every", "6", "--keep", "9"}), {}, folder.path()).exit_code == 0);

  // Another run from a checkpoint of the first.
  REQUIRE(
      run(words("b", {"--resume", "a/checkpoints/step-00000006"}), {}, folder.path()).exit_code ==
      0);
  CHECK(read_text(folder / "a/model.onnx") == read_text(folder / "b/model.onnx"));
  CHECK(RunReader::open(folder / "b").metrics().steps.front().step == 7);

  // The same run, set back by hand.
  for (const char* later : {"step-00000012", "step-00000015"}) {
    fs::remove_all(folder / "a/checkpoints" / later);
  }
  const std::string uninterrupted = read_text(folder / "b/model.onnx");
  REQUIRE(run(words("a", {"--resume", "auto"}), {}, folder.path()).exit_code == 0);
  CHECK(read_text(folder / "a/model.onnx") == uninterrupted);
  const RunReader resumed = RunReader::open(folder / "a");
  CHECK(resumed.manifest().sessions.size() == 2);
  CHECK(resumed.metrics().steps.size() == 15);
}

TEST_CASE("train: --resume refuses other settings and lists them") {
  const TemporaryFolder folder;
  REQUIRE(run(train({"--steps", "4", "--run-dir", "r"}), {}, folder.path()).exit_code == 0);
  const Finished finished =
      run(train({"--steps", "8", "--run-dir", "r", "--resume", "auto", "--weight-decay", "0.5",
                 "--data", "synthetic,examples=600"}),
          {}, folder.path());
  CHECK(finished.exit_code == 2);  // --data is given twice
  std::vector<std::string> words =
      train({"--steps", "8", "--run-dir", "r", "--resume", "auto", "--weight-decay", "0.5"});
  words[3] = "synthetic,examples=600";
  words[5] = "4";
  const Finished refused = run(words, {}, folder.path());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("error: the run cannot go on from step 4 with other settings\n") == 0);
  CHECK(refused.err.find("  at: optimizer.weight_decay was 0.0, is 0.5\n") != std::string::npos);
  CHECK(refused.err.find("  at: data.examples was 512, is 600\n") != std::string::npos);
  CHECK(refused.err.find("  at: seed was 3, is 4\n") != std::string::npos);
  // More steps are no other setting with a constant rate.
  CHECK(run(train({"--steps", "8", "--run-dir", "r", "--resume", "auto"}), {}, folder.path())
            .exit_code == 0);
  CHECK(run(train({"--steps", "8", "--run-dir", "r"}), {}, folder.path()).exit_code == 2);
}

TEST_CASE("train: a run whose schedule has come to its end goes on as a new run") {
  const TemporaryFolder folder;
  const auto words = [](const char* steps, const char* name) {
    return train({"--schedule", "cosine", "--steps", steps, "--run-dir", name});
  };
  REQUIRE(run(words("4", "r"), {}, folder.path()).exit_code == 0);
  std::vector<std::string> longer = words("8", "r");
  longer.insert(longer.end(), {"--resume", "r/checkpoints/step-00000004"});
  const Finished refused = run(longer, {}, folder.path());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("schedule.total_steps was 4, is 8") != std::string::npos);

  std::vector<std::string> other = words("8", "s");
  other.insert(other.end(), {"--resume", "r/checkpoints/step-00000004"});
  const Finished finished = run(other, {}, folder.path());
  CHECK(finished.exit_code == 0);
  CHECK(finished.err.find(
            "warning: the new run has a schedule of its own: total_steps was 4, is 8") !=
        std::string::npos);
  const std::vector<StepRecord> steps = RunReader::open(folder / "s").metrics().steps;
  REQUIRE(steps.size() == 4);
  CHECK(steps.front().step == 5);
  CHECK(steps.front().learning_rate > steps.back().learning_rate);
}

TEST_CASE("train: a signal saves a checkpoint, and the resumed run equals the uninterrupted one") {
  const TemporaryFolder folder;
  constexpr int kSteps = 3000;
  const std::vector<std::string> steps = {"--steps", std::to_string(kSteps), "--run-dir"};
  const auto words = [&steps](const std::string& name) {
    std::vector<std::string> all = train(steps);
    all.push_back(name);
    return all;
  };
  const std::pair<int, int> cases[] = {{SIGINT, 130}, {SIGTERM, 143}};
  for (const auto& [signal, exit_code] : cases) {
    const std::string name = "run-" + std::to_string(exit_code);
    Process process(words(name), {}, folder.path());
    const fs::path metrics = folder / name / "metrics.jsonl";
    REQUIRE(wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 2000; }));
    process.signal(signal);
    const Finished finished = process.wait();
    CHECK(finished.exit_code == exit_code);
    const RunReader stopped = RunReader::open(folder / name);
    const RunSession& session = stopped.manifest().sessions.back();
    CHECK(session.status == RunStatus::kInterrupted);
    CHECK(session.exit_code == exit_code);
    REQUIRE(session.last_step > 0);
    REQUIRE(session.last_step < kSteps);
    CHECK(finished.out.find(
              fmt::format("stopped after step {} of {}", session.last_step, kSteps)) == 0);
  }
  std::vector<std::string> resumed = words("run-130");
  resumed.insert(resumed.end(), {"--resume", "auto"});
  REQUIRE(run(resumed, {}, folder.path()).exit_code == 0);
  REQUIRE(run(words("whole"), {}, folder.path()).exit_code == 0);
  check_same(folder / "whole", folder / "run-130", kSteps);
}

TEST_CASE("train: a signal cuts the last validation short") {
  const TemporaryFolder folder;
  std::vector<std::string> words = train({"--steps", "1", "--run-dir", "r"});
  words[3] = "synthetic,examples=1000000,validation=0.95";  // more than a second of validation
  Process process(words, {}, folder.path());
  const fs::path metrics = folder / "r/metrics.jsonl";
  REQUIRE(wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  process.signal(SIGINT);
  CHECK(process.wait().exit_code == 130);
  const RunReader run = RunReader::open(folder / "r");
  CHECK(run.manifest().sessions.back().status == RunStatus::kInterrupted);
  CHECK(run.metrics().steps.size() == 1);
  CHECK(run.metrics().evaluations.empty());
  CHECK(fs::exists(folder / "r/checkpoints/step-00000001"));
}

TEST_CASE("train: progress goes to standard error as plain lines, results to standard output") {
  const TemporaryFolder folder;
  std::vector<std::string> words = train({"--steps", "3", "--run-dir", "r"});
  std::erase(words, "-q");
  const Finished finished = run(words, {}, folder.path());
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.err.find("step 1/3  loss ") != std::string::npos);
  CHECK(finished.err.find("step 3/3  loss ") != std::string::npos);
  CHECK(finished.err.find('\r') == std::string::npos);
  CHECK(finished.out.find("steps       1 to 3, loss ") == 0);
  CHECK(finished.out.find("\nrun         r (trainscope inspect r)\n") != std::string::npos);
}

TEST_CASE("train: flags come from the environment too") {
  const TemporaryFolder folder;
  REQUIRE(run({"train", kMlp, "-q"},
              {{"TRAINSCOPE_DATA", "synthetic"},
               {"TRAINSCOPE_STEPS", "2"},
               {"TRAINSCOPE_THREADS", "1"},
               {"TRAINSCOPE_RUN_DIR", "from-environment"}},
              folder.path())
              .exit_code == 0);
  CHECK(RunReader::open(folder / "from-environment").metrics().steps.size() == 2);
}

TEST_CASE("train: frozen parameters stay, others move") {
  const TemporaryFolder folder;
  REQUIRE(run(train({"--steps", "3", "--run-dir", "r", "--freeze", "*.bias"}), {}, folder.path())
              .exit_code == 0);
  const OnnxModel before = OnnxModel::read(kMlp);
  const OnnxModel after = OnnxModel::read(folder / "r/model.onnx");
  for (const ModelInitializer& initializer : before.initializers()) {
    const SharedTensor a = before.initializer(initializer.name);
    const SharedTensor b = after.initializer(initializer.name);
    const bool same = std::ranges::equal(a->values<float>(), b->values<float>());
    INFO(initializer.name);
    CHECK(same == initializer.name.ends_with(".bias"));
  }
}

}  // namespace
}  // namespace trainscope::test
