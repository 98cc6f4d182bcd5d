// The same questions of runs that the program has trained, with the times and roofs of this
// machine; and the way from a run to one in less memory that trains on.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/walks.h"

namespace trainscope::gui {
namespace {

using test::Walk;
using trainscope::test::TemporaryFolder;

// A model of the catalogue, and how it is trained.
using Words = std::vector<std::string>;
struct Training {
  Words model;
  Words flags;
};
const std::array<Training, 3> kTrainings = {
    {{{"gpt2", "--layers", "2", "--heads", "2", "--embedding", "16", "--vocab", "32", "--context",
       "32"},
      {"--batch", "8", "--seq", "32"}},
     {{"vit", "--embedding", "32", "--heads", "2", "--feed-forward", "64", "--layers", "2",
       "--image", "32", "--patch", "4", "--classes", "10"},
      {"--batch", "16"}},
     {{"unet", "--image", "32", "--width", "8", "--depth", "2"}, {"--batch", "8"}}}};

// A run in `folder` of the model file, which synthetic data trains.
void train(const std::filesystem::path& model, const std::filesystem::path& folder,
           const Words& flags) {
  Words words = {"train", model.string(), "--data",    "synthetic",    "--threads",
                 "2",     "-q",           "--run-dir", folder.string()};
  words.insert(words.end(), flags.begin(), flags.end());
  const trainscope::test::Finished finished = trainscope::test::run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
}

// A run in the folder "run" of `folder`, with its model beside it.
void train(const Training& training, const TemporaryFolder& folder, const Words& more) {
  const std::filesystem::path model = folder / "model.onnx";
  Words words = {"model"};
  words.insert(words.end(), training.model.begin(), training.model.end());
  words.insert(words.end(), {"-o", model.string()});
  REQUIRE(trainscope::test::run(words).exit_code == 0);
  words = training.flags;
  words.insert(words.end(), more.begin(), more.end());
  train(model, folder / "run", words);
}

// Profiled on this machine, whose roofs were measured before. Recorded once for all cases.
class RecordedRuns {
 public:
  RecordedRuns() {
    const std::string machine = (machine_ / "machine.json").string();
    REQUIRE(trainscope::test::run({"doctor", "--roofs", "--roof-seconds", "0.002", "--roof-memory",
                                   "32MiB", "--threads", "2", "--out", machine})
                .exit_code == 0);
    for (std::size_t i = 0; i < kTrainings.size(); ++i) {
      train(kTrainings[i], folders_[i],
            {"--steps", "4", "--profile", "steps=2:4", "--machine", machine});
    }
  }
  std::filesystem::path run(std::size_t i) const { return folders_[i] / "run"; }

 private:
  TemporaryFolder machine_;
  std::array<TemporaryFolder, kTrainings.size()> folders_;
};
const RecordedRuns& recorded_runs() {
  static const RecordedRuns runs;
  return runs;
}

struct Fitted {
  std::int64_t before = 0;  // bytes of the arena
  std::int64_t now = 0;
  bool is_nearest = false;  // the least that there is a plan for was offered

  double share() const { return static_cast<double>(now) / static_cast<double>(before); }
};
// The walk to a plan in 60 % of the memory, or the nearest one that there is, and on with it.
Fitted made_to_fit(const Training& training) {
  const TemporaryFolder folder;
  train(training, folder, {"--steps", "1"});
  Fitted fitted;
  fitted.before = RunReader::open(folder / "run").plan().value().view().arena().bytes;
  Walk walk(folder / "run");
  REQUIRE(walk.pick("main/overview/ask/fit"));
  walk.settle();
  REQUIRE(walk.pick("main/budget/budget"));
  walk.write("60%");
  walk.press("Enter");
  walk.settle();
  fitted.is_nearest = walk.has("main/budget/nearest");
  if (fitted.is_nearest) REQUIRE(walk.pick("main/budget/nearest"));
  walk.settle();
  REQUIRE(walk.pick("main/budget/run"));
  walk.settle();
  CHECK(walk.actions <= test::kMostActions);
  const RunReader after = RunReader::open(folder / "run");
  REQUIRE(after.manifest().sessions.size() == 2);
  CHECK(after.metrics().steps.size() == 21);
  fitted.now = after.plan().value().view().arena().bytes;
  const Item* measured = walk.items().find("main/budget/worker/arena/measured");
  REQUIRE(measured != nullptr);
  CHECK(measured->number == static_cast<double>(fitted.now));
  return fitted;
}

TEST_SUITE_BEGIN("processes");

TEST_CASE("walk: which op holds the peak, in steps that were trained?") {
  for (std::size_t i = 0; i < kTrainings.size(); ++i) test::walk_to_peak(recorded_runs().run(i));
}

TEST_CASE("walk: which pass made this node, in steps that were trained?") {
  for (std::size_t i = 0; i < kTrainings.size(); ++i) test::walk_to_pass(recorded_runs().run(i));
}

TEST_CASE("walk: why is this op slow, in steps that were timed on a machine that was measured?") {
  for (std::size_t i = 0; i < kTrainings.size(); ++i) {
    for (const profiler::RoofReason& reason : test::walk_to_slowest(recorded_runs().run(i))) {
      CHECK(reason.share > 0.0);
    }
  }
}

TEST_CASE("walk: where did my Gelu go, in steps that were trained, one of them PyTorch's model?") {
  const TemporaryFolder folder;
  train(trainscope::test::test_model("bert/model.onnx"), folder / "run", {"--steps", "1"});
  for (const std::filesystem::path& run :
       {recorded_runs().run(0), recorded_runs().run(1), folder / "run"}) {
    const std::vector<std::string> ops = test::walk_to_gelu(run);
    INFO(run.string());
    CHECK(std::ranges::count(ops, "Erf") + std::ranges::count(ops, "Tanh") == 1);
    CHECK(ops.size() >= 5);
  }
}

TEST_CASE("walk: make it fit in 60 % and train on") {
  for (const Training& training : kTrainings) {
    INFO(training.model[0]);
    const Fitted fitted = made_to_fit(training);
    CHECK_FALSE(fitted.is_nearest);
    CHECK(fitted.share() <= 0.6);
  }
}

TEST_CASE("walk: what cannot fit in 60 % is offered the nearest, and trains on with that") {
  // Most of its bytes are parameters and their states.
  const Fitted fitted = made_to_fit({{"gpt2", "--layers", "1", "--heads", "2", "--embedding", "32",
                                      "--vocab", "64", "--context", "8"},
                                     {"--batch", "4", "--seq", "8"}});
  CHECK(fitted.is_nearest);
  CHECK(fitted.share() > 0.6);
  CHECK(fitted.share() < 1.0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
