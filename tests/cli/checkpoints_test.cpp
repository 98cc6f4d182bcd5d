// Checkpoints from the command line: the best one, signals, threads, disks that take nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "engine/bundle/reader.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();
const std::string kLenet = test_model("lenet/model.onnx").string();

std::vector<std::string> train(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train", model, "--data", "synthetic", "--seed", "3", "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string trained(const fs::path& run) { return read_text(run / "model.onnx"); }

TEST_CASE("best checkpoint: the lowest validation loss, kept beside the newest") {
  const TemporaryFolder folder;
  // The labels are random: what is learned of some makes others worse, so the best is not the last.
  const Finished finished =
      run(train(kMlp, {"--threads", "1", "--steps", "12", "--lr", "0.05", "--eval-every", "2",
                       "--save-every", "1", "--keep", "1", "--run-dir", "r", "--json"}),
          {}, folder.path());
  REQUIRE(finished.exit_code == 0);
  const std::vector<EvaluationRecord> evaluations =
      RunReader::open(folder / "r").metrics().evaluations;
  REQUIRE(evaluations.size() == 6);
  const auto best = std::ranges::min_element(evaluations, {}, &EvaluationRecord::loss);
  const Json noted = Json::parse(read_text(folder / "r/checkpoints/best.json"));
  CHECK(noted.get<std::int64_t>("step") == best->step);
  CHECK(noted.get<double>("loss") == best->loss);
  CHECK(finished.json().at("best").get<std::int64_t>("step") == best->step);
  CHECK(fs::exists(folder / "r/checkpoints" / fmt::format("step-{:08}", best->step)));
  CHECK(fs::exists(folder / "r/checkpoints/step-00000012"));

  // Evaluated and exported it is the model of that step.
  const auto loss_of = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"eval", "r", "--threads", "1", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished evaluated = run(all, {}, folder.path());
    REQUIRE(evaluated.exit_code == 0);
    return evaluated.json().get<double>("loss");
  };
  CHECK(loss_of({"--best"}) == best->loss);
  CHECK(loss_of({}) == evaluations.back().loss);
  REQUIRE(run({"export", "r", "--best", "-o", "best.onnx"}, {}, folder.path()).exit_code == 0);
  const Finished of_file =
      run({"eval", "best.onnx", "--data", "synthetic", "--seed", "3", "--threads", "1", "--json"},
          {}, folder.path());
  CHECK(of_file.json().get<double>("loss") == best->loss);
}

TEST_CASE("best checkpoint: not noted when not wanted, and --best says so") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--run-dir", "a"},
        {"--eval-every", "2", "--no-keep-best", "--run-dir", "b"}}) {
    std::vector<std::string> all = {"--steps", "4"};
    all.insert(all.end(), words.begin(), words.end());
    REQUIRE(run(train(kMlp, all), {}, folder.path()).exit_code == 0);
    CHECK(!fs::exists(folder / words.back() / "checkpoints/best.json"));
    const Finished refused = run({"eval", words.back(), "--best"}, {}, folder.path());
    CHECK(refused.exit_code == 2);
    CHECK(refused.err == fmt::format("error: the run '{}' has noted no best checkpoint\n"
                                     "  try: train with --eval-every N\n",
                                     words.back()));
  }
}

TEST_CASE("best checkpoint: a resumed run knows it, and ends as the uninterrupted one") {
  const TemporaryFolder folder;
  const auto words = [](const std::string& name, int steps) {
    return train(
        kMlp, {"--threads", "1", "--steps", std::to_string(steps), "--lr", "0.05", "--eval-every",
               "2", "--save-every", "1", "--keep", "2", "--run-dir", name, "--resume", "auto"});
  };
  REQUIRE(run(words("whole", 12), {}, folder.path()).exit_code == 0);
  for (int steps : {3, 7, 12}) {
    REQUIRE(run(words("parts", steps), {}, folder.path()).exit_code == 0);
  }
  CHECK(trained(folder / "whole") == trained(folder / "parts"));
  const auto loss_in = [&](const std::string& name) {
    return Json::parse(read_text(folder / name / "checkpoints/best.json")).get<double>("loss");
  };
  // The parts ended with a validation each: they may have met a better model, never a worse one.
  CHECK(loss_in("parts") <= loss_in("whole"));
}

TEST_CASE("signals: a second one ends the process at once") {
  for (const auto& [signal, exit_code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const TemporaryFolder folder;
    // A step takes minutes here, so that the second signal comes before the first one is looked at.
    Process process(
        train(kLenet, {"--steps", "100000", "--run-dir", "r", "--accumulate", "1000000"}), {},
        folder.path());
    const fs::path plan = folder / "r/plan.json";
    REQUIRE(wait_until([&] { return fs::exists(plan); }));
    const auto pause = std::chrono::milliseconds(300);
    std::this_thread::sleep_for(pause);  // the first step has begun
    process.signal(signal);
    std::this_thread::sleep_for(pause);
    process.signal(signal);
    CHECK(process.wait().exit_code == exit_code);
    CHECK(RunReader::open(folder / "r").manifest().sessions.back().status == RunStatus::kRunning);
    CHECK(fs::is_empty(folder / "r/checkpoints"));
  }
}

TEST_CASE("resume: a run that starts from another one's checkpoint has it before its first step") {
  const TemporaryFolder folder;
  REQUIRE(run(train(kMlp, {"--steps", "2", "--run-dir", "a"}), {}, folder.path()).exit_code == 0);
  const auto words = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--steps", "3", "--run-dir", "b", "--resume"};
    all.insert(all.end(), more.begin(), more.end());
    return train(kMlp, all);
  };
  REQUIRE(run(words({"a"}), {}, folder.path()).exit_code == 0);
  CHECK(fs::exists(folder / "b/checkpoints/step-00000002"));
  // As after a kill in the first step.
  fs::remove_all(folder / "b/checkpoints/step-00000003");
  const Finished resumed = run(words({"auto", "--json"}), {}, folder.path());
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.json().get<std::int64_t>("from_step") == 2);
}

TEST_CASE("time limit: a run ends after a step, and goes on bit for bit") {
  const TemporaryFolder folder;
  const auto words = [](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--threads", "1",    "--steps",   "4",  "--schedule", "cosine",
                                    "--lr",      "1e-2", "--run-dir", name, "--resume",   "auto"};
    all.insert(all.end(), more.begin(), more.end());
    return train(kMlp, all);
  };
  REQUIRE(run(words("whole", {}), {}, folder.path()).exit_code == 0);
  // Less time than a program needs to begin: each session does one step.
  for (int step = 1; step <= 4; ++step) {
    const Finished finished =
        run(words("parts", {"--time-limit", "1ms", "--json"}), {}, folder.path());
    REQUIRE(finished.exit_code == 0);
    CHECK(finished.json().get<std::int64_t>("step") == step);
    CHECK(finished.json().get<std::string>("status") == (step < 4 ? "interrupted" : "finished"));
    const RunSession session = RunReader::open(folder / "parts").manifest().sessions.back();
    CHECK(session.last_step == step);
    CHECK(session.exit_code == 0);
  }
  CHECK(trained(folder / "parts") == trained(folder / "whole"));
}

TEST_CASE("resume: with another number of threads it goes on and says so") {
  const TemporaryFolder folder;
  const auto words = [](const std::string& steps, const std::string& threads) {
    return train(kLenet,
                 {"--steps", steps, "--threads", threads, "--run-dir", "r", "--resume", "auto"});
  };
  REQUIRE(run(words("2", "2"), {}, folder.path()).exit_code == 0);
  const Finished resumed = run(words("4", "1"), {}, folder.path());
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.err.find("the resumed run may differ in the last bits: threads was 2, is 1") !=
        std::string::npos);
  CHECK(run(words("6", "1"), {}, folder.path()).err.empty());
}

TEST_CASE("resume: what adds numbers in another order is refused") {
  const TemporaryFolder folder;
  const auto words = [](const char* steps, const std::vector<std::string>& more) {
    std::vector<std::string> all =
        train(kMlp, {"--steps", steps, "--run-dir", "r", "--resume", "auto", "--threads", "2"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  REQUIRE(run(words("2", {"--batch-tiles", "auto"}), {}, folder.path()).exit_code == 0);
  const Finished plain = run(words("4", {}), {}, folder.path());
  CHECK(plain.exit_code == 2);
  CHECK(plain.err.find("batch_tiles was \"auto\", is not set") != std::string::npos);
  const Finished chunks =
      run(words("4", {"--batch-tiles", "auto", "--loss-chunks", "2"}), {}, folder.path());
  CHECK(chunks.exit_code == 2);
  CHECK(chunks.err.find("loss_chunks was not set, is 2") != std::string::npos);
  CHECK(run(words("4", {"--batch-tiles", "auto"}), {}, folder.path()).exit_code == 0);
}

TEST_CASE("strict determinism: the same bits at any thread count, resumed at another one too") {
  const TemporaryFolder folder;
  const auto words = [](const std::string& name, const std::string& steps,
                        const std::string& threads) {
    return train(kLenet, {"--deterministic", "strict", "--steps", steps, "--threads", threads,
                          "--run-dir", name, "--resume", "auto"});
  };
  for (const char* threads : {"1", "2", "3"}) {
    REQUIRE(run(words(threads, "4", threads), {}, folder.path()).exit_code == 0);
    CHECK(trained(folder / threads) == trained(folder / "1"));
  }
  REQUIRE(run(words("mixed", "2", "3"), {}, folder.path()).exit_code == 0);
  const Finished resumed = run(words("mixed", "4", "2"), {}, folder.path());
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.err.empty());  // nothing to warn about
  CHECK(trained(folder / "mixed") == trained(folder / "1"));
}

}  // namespace
}  // namespace trainscope::test
