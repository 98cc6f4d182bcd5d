// Run folders from the command line: plans that are recorded, sessions, runs of format 1.
#include <doctest/doctest.h>

#include <fstream>

#include "engine/bundle/reader.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const fs::path kFormat1 = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/run-format-1";

Finished done(const std::vector<std::string>& words, const fs::path& folder) {
  const Finished finished = run(words, {}, folder);
  INFO(finished.err);
  CHECK(finished.exit_code == 0);
  return finished;
}

Json facts(std::vector<std::string> words, const fs::path& folder) {
  words.insert(words.end(), {"--json", "-q"});
  return done(words, folder).json();
}

Finished train(const fs::path& model, int steps, const fs::path& folder,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"train",     model.string(),
                                    "--data",    "synthetic,examples=64",
                                    "--steps",   std::to_string(steps),
                                    "--threads", "1",
                                    "--run-dir", "run",
                                    "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return done(words, folder);
}

// A copy of the run of format 1 as "run", and the model beside it.
void copy_format_1(const TemporaryFolder& folder) {
  fs::copy(kFormat1, folder.path(), fs::copy_options::recursive);
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("run format 1: it is inspected, planned, evaluated and exported as it is") {
  const TemporaryFolder folder;
  copy_format_1(folder);
  const Json about = facts({"inspect", "run"}, folder.path());
  CHECK(about.at("last_step").get<int>("step") == 3);
  CHECK(facts({"inspect", "run", "--stages"}, folder.path()).array_at("stages").size() == 36);
  CHECK(facts({"inspect", "run", "--stage", "23-differentiate"}, folder.path()).size() > 0);
  const Json memory = facts({"inspect", "run", "--memory"}, folder.path());
  CHECK(memory.get<int>("arena_bytes") == 6592);
  CHECK(memory.get<std::string>("node") == "logits");
  CHECK(facts({"plan", "run"}, folder.path()).get<int>("peak_bytes") == 6592);
  CHECK(facts({"eval", "run"}, folder.path()).get<int>("examples") == 7);
  for (const char* format : {"onnx", "safetensors", "csv", "tensorboard", "plan-json"}) {
    CAPTURE(format);
    const std::string out = "out." + std::string(format);
    done({"export", "run", "--format", format, "-o", out}, folder.path());
    CHECK(fs::file_size(folder / out) > 0);
  }
  done({"export", "run", "--stage", "differentiate", "-o", "stage.onnx"}, folder.path());
  const Json plan = Json::parse(read_text(folder / "out.plan-json"));
  CHECK(plan.array_at("calls").size() == 12);
}

TEST_CASE("run format 1: it goes on, and what it had is kept") {
  const TemporaryFolder folder;
  copy_format_1(folder);
  const std::string before = read_text(folder / "run/plan.json");
  train("model.onnx", 5, folder.path(),
        {"--batch", "4", "--save-every", "1", "--eval-every", "2", "--keep", "2", "--resume",
         "auto"});
  const RunReader reader = RunReader::open(folder / "run");
  CHECK(reader.manifest().format == 2);
  CHECK(reader.manifest().sessions.back().from_step == 3);
  CHECK(reader.metrics().steps.size() == 5);
  CHECK(read_text(folder / "run/sessions/1/plan.json") == before);
  const Json now = facts({"inspect", "run", "--memory"}, folder.path());
  const Json then = facts({"inspect", "run", "--memory", "--session", "1"}, folder.path());
  // Workspaces are those of this processor's kernels, and of those of the one that recorded it.
  CHECK(then.get<int>("arena_bytes") == Json::parse(before).get<int>("arena_bytes"));
  CHECK(now.get<int>("arena_bytes") > 0);
  CHECK(facts({"inspect", "run", "--stages", "--session", "1"}, folder.path())
            .array_at("stages")
            .size() == 36);
}

TEST_CASE("plan: a run's is planned again when its model is gone") {
  for (const char* name : {"mlp", "gpt2", "resnet18"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    fs::copy_file(test_model(std::string(name) + "/model.onnx"), folder / "model.onnx");
    train("model.onnx", 1, folder.path());
    const Json plain = facts({"plan", "run"}, folder.path());
    const std::vector<std::vector<std::string>> asked = {{"--max-overhead", "10%"},
                                                         {"--op-order", "given"},
                                                         {"--threads", "2"},
                                                         {"--kernels", "reference"},
                                                         {"--memory-budget", "1GiB"}};
    for (const std::vector<std::string>& flags : asked) {
      CAPTURE(flags[0]);
      std::vector<std::string> words = {"plan", "run"};
      words.insert(words.end(), flags.begin(), flags.end());
      const Json with_model = facts(words, folder.path());
      words[1] = "model.onnx";
      if (flags[0] != "--threads") words.insert(words.end(), {"--threads", "1"});
      CHECK(facts(words, folder.path()) == with_model);
    }
    fs::remove(folder / "model.onnx");
    const Json again = facts({"plan", "run", "--memory-budget", "1GiB"}, folder.path());
    CHECK(again.get<std::int64_t>("arena_bytes") == plain.get<std::int64_t>("arena_bytes"));
    const Finished other = run({"plan", "run", "--batch", "3"}, {}, folder.path());
    CHECK(other.exit_code == 6);
    CHECK(other.err.find("model.onnx") != std::string::npos);
  }
}

TEST_CASE("plan: within a budget, of a run whose model is gone") {
  const TemporaryFolder folder;
  fs::copy_file(test_model("gpt2/model.onnx"), folder / "model.onnx");
  train("model.onnx", 1, folder.path());
  const auto plain = facts({"plan", "run"}, folder.path()).get<std::int64_t>("arena_bytes");
  const std::vector<std::string> words = {"plan", "run", "--memory-budget",
                                          std::to_string(plain - plain / 20)};
  const Json before = facts(words, folder.path());
  fs::remove(folder / "model.onnx");
  const Json after = facts(words, folder.path());
  CHECK(after == before);
  CHECK(after.get<std::int64_t>("arena_bytes") <= plain - plain / 20);
  CHECK(after.at("recompute").get<int>("repeats") > 0);
  CHECK(facts({"plan", "run", "--front"}, folder.path()).array_at("front").size() > 1);
}

TEST_CASE("export: plan-json is a run's plan.json, and a model's plan") {
  const TemporaryFolder folder;
  fs::copy_file(test_model("mlp/model.onnx"), folder / "model.onnx");
  train("model.onnx", 1, folder.path());
  done({"export", "run", "--format", "plan-json", "-o", "plan.json"}, folder.path());
  CHECK(read_text(folder / "plan.json") == read_text(folder / "run/plan.json"));
  done({"export", "model.onnx", "--threads", "1", "--format", "plan-json", "-o", "model.json"},
       folder.path());
  CHECK(read_text(folder / "model.json") == read_text(folder / "run/plan.json"));
}

TEST_CASE("run: a stage is found by number and name, also where it has another's file") {
  const TemporaryFolder folder;
  fs::copy_file(test_model("mlp/model.onnx"), folder / "model.onnx");
  train("model.onnx", 1, folder.path());
  const RunReader reader = RunReader::open(folder / "run");
  std::size_t shared = 0;
  const std::vector<StageRecord> stages = reader.stages();
  for (std::size_t i = 1; i < stages.size(); ++i) {
    CHECK(stages[i].changed == (stages[i].file != stages[i - 1].file));
    if (!stages[i].changed) ++shared;
  }
  CHECK(shared > 10);
  const Json loss = facts({"inspect", "run", "--stage", "loss"}, folder.path());
  CHECK(facts({"inspect", "run", "--stage", "18-compact_labels"}, folder.path()) == loss);
  CHECK(facts({"inspect", "run", "--stage", "18-compact_labels.onnx"}, folder.path()) == loss);
}

TEST_CASE("run: a damaged plan.bin is one clear error, and a resumed session writes it anew") {
  const TemporaryFolder folder;
  fs::copy_file(test_model("mlp/model.onnx"), folder / "model.onnx");
  train("model.onnx", 1, folder.path());
  const std::string good = read_text(folder / "run/plan.bin");
  std::string flipped = good;
  flipped[flipped.size() / 2] ^= 4;
  for (const std::string& content : {std::string(), good.substr(0, good.size() / 2), flipped}) {
    write_text(folder / "run/plan.bin", content);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"plan", "run"}, {"inspect", "run", "--memory"}}) {
      const Finished finished = run(words, {}, folder.path());
      CHECK(finished.exit_code == 3);
      CHECK(finished.err.starts_with("error: 'run/plan.bin': "));
      CHECK(finished.err.find("try: ") != std::string::npos);
    }
  }
  train("model.onnx", 2, folder.path(), {"--resume", "auto"});
  CHECK(facts({"plan", "run"}, folder.path()).get<int>("call_count") > 0);
  CHECK(run({"inspect", "run", "--memory", "--session", "1"}, {}, folder.path()).exit_code == 3);
  const Finished none = run({"inspect", "run", "--memory", "--session", "3"}, {}, folder.path());
  CHECK(none.exit_code == 2);
  CHECK(none.err == "error: the run has no session 3: it has 2\n");
  CHECK(run({"inspect", "model.onnx", "--memory", "--session", "1"}, {}, folder.path()).exit_code ==
        2);
}

}  // namespace trainscope::test
