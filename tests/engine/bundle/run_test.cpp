// Run folders: what is written is read back; restarts, crashes, damage, later versions.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/bundle/reader.h"
#include "engine/bundle/writer.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/engine/bundle/run_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> steps_of(const Metrics& metrics) {
  std::vector<std::int64_t> steps;
  for (const StepRecord& row : metrics.steps) steps.push_back(row.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

void append(const fs::path& file, std::string_view text) {
  put(file, get(file) + std::string(text));
}

}  // namespace

TEST_CASE("run: what is written is read back") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.write_config("steps = 20\n");
  writer.write_plan(chain_plan(2));
  CHECK(writer.next_stage_file("imported").path() ==
        folder / "run" / "stages" / "00-imported.onnx");
  writer.add_stage({.name = "imported", .nodes_after = 5, .milliseconds = 1.5, .hash = "ab"});
  CHECK(writer.next_stage_file("dead_code").path() ==
        folder / "run" / "stages" / "01-dead_code.onnx");
  write_file_atomic(writer.next_stage_file("dead_code"), "graph");
  writer.add_stage({.name = "dead_code",
                    .nodes_before = 5,
                    .nodes_after = 3,
                    .flops_before = 90,
                    .flops_after = 70,
                    .bytes_before = 80,
                    .bytes_after = 60,
                    .milliseconds = 0.25,
                    .changed = true,
                    .hash = "cd",
                    .counters = {{"removed", 2}},
                    .near_misses = {{.nodes = {"/Exp", "/Sum"}, .reason = "somebody reads it"}}});
  writer.add_step(step_record(1));
  writer.add_step(step_record(2, std::numeric_limits<double>::quiet_NaN()));
  writer.add_evaluation({.step = 2, .loss = 2.25, .examples = 40, .milliseconds = 8.0});
  writer.finish(RunStatus::kFailed, 7, "loss is NaN");

  const RunReader reader = RunReader::open(folder / "run");
  CHECK(reader.manifest().format == 2);
  CHECK(reader.manifest().seed == 0xFFFF'FFFF'FFFF'FFF1U);
  CHECK(reader.manifest().options == small_session().options);
  CHECK(reader.manifest().model.get<std::string>("xxh3") == "00aa");
  CHECK(reader.manifest().data.get<std::string>("kind") == "text");
  const RunSession& session = reader.manifest().sessions.at(0);
  CHECK(session.command == small_session().command);
  CHECK(session.isa == "AVX2");
  CHECK(session.threads == 2);
  CHECK(session.status == RunStatus::kFailed);
  CHECK(session.exit_code == 7);
  CHECK(session.last_step == 2);
  CHECK(session.message == "loss is NaN");
  CHECK(session.start_time.size() == 24);
  CHECK(session.end_time >= session.start_time);

  CHECK(reader.plan()->view().calls.size() == 2);
  CHECK(Json::parse(get(folder / "run" / "plan.json")).at("calls").size() == 2);
  CHECK(get(folder / "run" / "config.toml") == "steps = 20\n");
  const std::vector<StageRecord> stages = reader.stages();
  REQUIRE(stages.size() == 2);
  CHECK(stages[1].name == "dead_code");
  CHECK(stages[1].nodes_before == 5);
  CHECK(stages[1].nodes_after == 3);
  CHECK(stages[1].flops_before == 90);
  CHECK(stages[1].flops_after == 70);
  CHECK(stages[1].bytes_before == 80);
  CHECK(stages[1].bytes_after == 60);
  CHECK(stages[1].milliseconds == 0.25);
  CHECK(stages[1].changed);
  CHECK(stages[1].hash == "cd");
  CHECK(stages[1].counters == std::map<std::string, std::int64_t>{{"removed", 2}});
  CHECK(stages[0].near_misses.empty());
  REQUIRE(stages[1].near_misses.size() == 1);
  CHECK(stages[1].near_misses[0].nodes == std::vector<std::string>{"/Exp", "/Sum"});
  CHECK(stages[1].near_misses[0].reason == "somebody reads it");
  CHECK(reader.open_stage(stages[1]).path() == folder / "run" / "stages" / "01-dead_code.onnx");
  CHECK(reader.open_stage(stages[1]).size_bytes() == 5);

  const Metrics metrics = reader.metrics();
  CHECK(steps_of(metrics) == Steps{1, 2});
  CHECK(metrics.steps[0].loss == 2.5);
  CHECK(metrics.steps[0].learning_rate == 0.001);
  CHECK(metrics.steps[0].gradient_norm == 0.75);
  CHECK(metrics.steps[0].step_ms == 12.5);
  CHECK(metrics.steps[0].samples == 8);
  CHECK(metrics.steps[0].tokens == 512);
  CHECK(std::isnan(metrics.steps[1].loss));
  REQUIRE(metrics.evaluations.size() == 1);
  CHECK(metrics.evaluations[0].loss == 2.25);
  CHECK(metrics.evaluations[0].examples == 40);
}

TEST_CASE("run: a near miss of a run from before there were several nodes has one") {
  const StageRecord stage{.name = "fuse",
                          .file = "01-fuse.onnx",
                          .near_misses = {{.nodes = {"/Exp", "/Sum"}, .reason = "it is read"}}};
  const Json written = to_json(stage);
  CHECK(written.at("near_misses").at(0).get<std::string>("node") == "/Exp");
  CHECK(stage_from(written).near_misses.at(0).nodes == stage.near_misses[0].nodes);
  std::string text = written.dump();
  const std::string nodes = R"("nodes":["/Exp","/Sum"],)";
  REQUIRE(text.find(nodes) != std::string::npos);
  text.erase(text.find(nodes), nodes.size());
  const StageRecord old = stage_from(Json::parse(text));
  CHECK(old.near_misses.at(0).nodes == std::vector<std::string>{"/Exp"});
  CHECK(old.near_misses.at(0).reason == "it is read");
}

TEST_CASE("run: lines of metrics are as documented") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_step(step_record(1));
  writer.add_evaluation(
      {.step = 1, .loss = 2.25, .accuracy = 0.5, .examples = 40, .milliseconds = 8.5});
  CHECK(
      get(folder / "run" / "metrics.jsonl") ==
      R"({"kind":"step","step":1,"loss":2.5,"learning_rate":0.001,"gradient_norm":0.75,)"
      R"("step_ms":12.5,"samples":8,"tokens":512})"
      "\n"
      R"({"kind":"evaluation","step":1,"loss":2.25,"accuracy":0.5,"examples":40,"milliseconds":8.5})"
      "\n");
}

TEST_CASE("run: readable while it is written and after a crash") {
  const TemporaryFolder folder;
  {
    RunWriter writer = RunWriter::create(folder / "run", small_manifest());
    const RunReader live = RunReader::open(folder / "run");
    CHECK(live.metrics().steps.empty());
    CHECK(live.stages().empty());
    CHECK(!live.plan().has_value());
    writer.add_step(step_record(1));
    CHECK(steps_of(live.metrics()) == Steps{1});
    writer.add_step(step_record(2));
    CHECK(steps_of(live.metrics()) == Steps{1, 2});
  }
  const RunSession session = RunReader::open(folder / "run").manifest().sessions.at(0);
  CHECK(session.status == RunStatus::kRunning);
  CHECK(session.end_time.empty());
}

TEST_CASE("run: a torn last line is left out at every length") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_step(step_record(1));
  writer.add_step(step_record(2));
  const fs::path file = folder / "run" / "metrics.jsonl";
  const std::string text = get(file);
  const std::size_t first_line = text.find('\n') + 1;
  const RunReader reader = RunReader::open(folder / "run");
  for (std::size_t size = first_line; size < text.size(); ++size) {
    put(file, std::string_view(text).substr(0, size));
    CHECK(steps_of(reader.metrics()) == Steps{1});
  }
  put(file, text + std::string(300, '\0'));  // a file system may leave this when the power goes
  CHECK(steps_of(reader.metrics()) == Steps{1, 2});
}

TEST_CASE("run: a resumed session takes the place of the steps that it does again") {
  const TemporaryFolder folder;
  {
    RunWriter writer = RunWriter::create(folder / "run", small_manifest());
    for (std::int64_t step = 1; step <= 7; ++step) writer.add_step(step_record(step, 1.0));
    writer.add_evaluation({.step = 5, .loss = 1.0});
    writer.add_evaluation({.step = 6, .loss = 1.0});
  }
  append(folder / "run" / "metrics.jsonl", R"({"kind":"step","step":8,"lo)");
  {
    RunWriter writer = RunWriter::resume(RunLock::take(folder / "run"), small_session(5));
    CHECK(writer.manifest().sessions.size() == 2);
    writer.add_step(step_record(6, 2.0));
    writer.finish(RunStatus::kFinished, 0);
  }
  const RunReader reader = RunReader::open(folder / "run");
  const Metrics metrics = reader.metrics();
  CHECK(steps_of(metrics) == Steps{1, 2, 3, 4, 5, 6});
  CHECK(metrics.steps[4].loss == 1.0);
  CHECK(metrics.steps[5].loss == 2.0);
  REQUIRE(metrics.evaluations.size() == 1);
  CHECK(metrics.evaluations[0].step == 5);
  const auto& sessions = reader.manifest().sessions;
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[0].status == RunStatus::kRunning);  // it was killed
  CHECK(sessions[1].status == RunStatus::kFinished);
  CHECK(sessions[1].from_step == 5);
  CHECK(sessions[1].last_step == 6);
}

TEST_CASE("run: a new run needs a folder that is absent or empty") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  CHECK_NOTHROW(RunWriter::create(folder / "empty", small_manifest()));
  fs::create_directory(folder / "used");
  put(folder / "used" / "notes.txt", "mine");
  const Error used = error_of([&] { RunWriter::create(folder / "used", small_manifest()); });
  CHECK(used.code() == ErrorCode::kUsage);
  CHECK(contains(used.message(), "is not empty"));
  CHECK(contains(used.hint(), "--resume auto"));
  CHECK(fs::exists(folder / "used" / "notes.txt"));
  // What a process leaves that is killed before it has written the manifest.
  fs::create_directories(folder / "killed" / "stages");
  fs::create_directories(folder / "killed" / "checkpoints");
  put(folder / "killed" / ".trainscope-12-0.tmp", "{");
  CHECK_NOTHROW(RunWriter::create(folder / "killed", small_manifest()));
  fs::create_directories(folder / "other" / "checkpoints" / "step-00000001");
  CHECK_THROWS_AS(RunWriter::create(folder / "other", small_manifest()), Error);
  put(folder / "file", "");
  const Error file = error_of([&] { RunWriter::create(folder / "file", small_manifest()); });
  CHECK(file.code() == ErrorCode::kUsage);
  CHECK(contains(file.message(), "is a file"));
}

TEST_CASE("run: one process at a time writes a folder") {
  const TemporaryFolder folder;
  {
    const RunWriter writer = RunWriter::create(folder / "run", small_manifest());
    const Error error =
        error_of([&] { RunWriter::resume(RunLock::take(folder / "run"), small_session()); });
    CHECK(error.code() == ErrorCode::kUsage);
    CHECK(contains(error.message(), "another process is writing"));
  }
  CHECK_NOTHROW(RunWriter::resume(RunLock::take(folder / "run"), small_session()));
}

TEST_CASE("run: resuming needs a run") {
  const TemporaryFolder folder;
  const auto code = [&](const fs::path& path) {
    return error_of([&] { RunWriter::resume(RunLock::take(path), small_session()); }).code();
  };
  CHECK(code(folder / "absent") == ErrorCode::kIo);
  CHECK(code(folder.path()) == ErrorCode::kBadInput);
}

TEST_CASE("run folders: the first free number, never one that is taken") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  CHECK(create_numbered_run_folder(runs, "gpt2") == runs / "gpt2-1");
  CHECK(create_numbered_run_folder(runs, "gpt2") == runs / "gpt2-2");
  CHECK(create_numbered_run_folder(runs, "mlp") == runs / "mlp-1");
  put(runs / "gpt2-3", "a file");
  fs::create_symlink("nowhere", runs / "gpt2-4");
  CHECK(create_numbered_run_folder(runs, "gpt2") == runs / "gpt2-5");
  fs::remove(runs / "gpt2-1");
  CHECK(create_numbered_run_folder(runs, "gpt2") == runs / "gpt2-1");
  CHECK(create_numbered_run_folder(runs, "") == runs / "run-1");
}

TEST_CASE("run folders: processes at the same time get different ones") {
  const TemporaryFolder folder;
  std::array<pid_t, 4> children{};
  for (pid_t& child : children) {
    child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int i = 0; i < 25; ++i) create_numbered_run_folder(folder.path(), "r");
      ::_exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  for (int n = 1; n <= 100; ++n) CHECK(fs::exists(folder / ("r-" + std::to_string(n))));
  CHECK(!fs::exists(folder / "r-101"));
}

TEST_CASE("run: damaged manifests are refused") {
  struct Row {
    const char* from;
    const char* to;
    const char* message;
  };
  const Row rows[] = {
      {"\"format\": 2", "\"format\": 3", "run format 3: this program reads formats 1 to 2"},
      {"\"format\": 2", "\"format\": 0", "run format 0"},
      {"\"format\": 2", "\"format\": \"1\"", "key 'format': expected an integer"},
      {"\"format\"", "\"formel\"", "key 'format' is missing"},
      {"\"trainscope\"", "\"mlflow\"", "key 'program' is 'mlflow'"},
      {"18446744073709551601", "x", "key 'seed': expected a whole number as text"},
      {"18446744073709551601", "-5", "key 'seed'"},
      {"\"options\": {", "\"options\": 3, \"o\": {", "key 'options': expected an object"},
      {"\"sessions\": [", "\"sessions\": [], \"s\": [", "the list is empty"},
      {"\"running\"", "\"walking\"", "unknown status 'walking'"},
      {"\"threads\": 2", "\"threads\": 2.5", "key 'threads': expected an integer"},
      {"\"command\": [", "\"command\": [7,", "expected a string"},
      {"{", "", "JSON, line"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.to);
    const TemporaryFolder folder;
    { RunWriter::create(folder / "run", small_manifest()); }
    const fs::path file = folder / "run" / "manifest.json";
    std::string text = get(file);
    const std::size_t at = text.find(row.from);
    REQUIRE(at != std::string::npos);
    put(file, text.replace(at, std::string_view(row.from).size(), row.to));
    const Error error = error_of([&] { RunReader::open(folder / "run"); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
    CHECK(contains(error.message(), file.string()));
  }
}

TEST_CASE("run: manifests cut short at every byte are refused") {
  const TemporaryFolder folder;
  { RunWriter::create(folder / "run", small_manifest()); }
  const fs::path file = folder / "run" / "manifest.json";
  const std::string text = get(file);
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {  // the last byte is a line end
    put(file, std::string_view(text).substr(0, size));
    CHECK(error_of([&] { RunReader::open(folder / "run"); }).code() == ErrorCode::kBadInput);
  }
}

TEST_CASE("run: folders that are no run") {
  const TemporaryFolder folder;
  const Error absent = error_of([&] { RunReader::open(folder / "absent"); });
  CHECK(absent.code() == ErrorCode::kIo);
  CHECK(contains(absent.message(), "there is no run folder"));
  const Error empty = error_of([&] { RunReader::open(folder.path()); });
  CHECK(empty.code() == ErrorCode::kBadInput);
  CHECK(contains(empty.message(), "is not a run: it has no manifest.json"));
}

TEST_CASE("run: damaged metrics name their line, unknown kinds are skipped") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_step(step_record(4));
  const fs::path file = folder / "run" / "metrics.jsonl";
  const std::string good = get(file);
  const RunReader reader = RunReader::open(folder / "run");
  put(file,
      good + R"({"kind":"weather","sunny":true})" + "\n" + R"({"kind":"resume","step":4})" + "\n");
  CHECK(steps_of(reader.metrics()) == Steps{4});
  for (const char* line :
       {"", "step 5", "[]", "{}", R"({"kind":5})", R"({"kind":"step","step":5})",
        R"({"kind":"step","step":"5","loss":1})", R"({"kind":"evaluation","step":5.5})",
        R"({"kind":"resume"})", R"({"kind":"step","kind":"step"})"}) {
    CAPTURE(line);
    put(file, good + line + "\n");
    const Error error = error_of([&] { reader.metrics(); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "metrics.jsonl', line 2: "));
  }
  put(file, good + good);  // the same step twice without a resume
  CHECK(contains(error_of([&] { reader.metrics(); }).message(), "step 4 comes after step 4"));
}

TEST_CASE("run: the name of a GPU is in its session, and nowhere of a CPU") {
  const TemporaryFolder folder;
  RunManifest manifest = small_manifest();
  manifest.sessions[0].device = "cuda:0";
  manifest.sessions[0].device_name = "NVIDIA H100";
  RunWriter::create(folder / "gpu", manifest).finish(RunStatus::kFinished, 0);
  CHECK(RunReader::open(folder / "gpu").manifest().sessions[0].device_name == "NVIDIA H100");
  RunWriter::create(folder / "cpu", small_manifest()).finish(RunStatus::kFinished, 0);
  CHECK(RunReader::open(folder / "cpu").manifest().sessions[0].device_name.empty());
  CHECK(get(folder / "cpu" / "manifest.json").find("device_name") == std::string::npos);
}

}  // namespace trainscope
