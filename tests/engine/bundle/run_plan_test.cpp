// Stages and plans in a run's folder: shared files, readable forms, damage.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/bundle/writer.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/engine/bundle/run_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("run: a plan of many calls has no readable form") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.write_plan(chain_plan(static_cast<int>(kMostReadableCalls)));
  CHECK(fs::exists(folder / "run" / "plan.json"));
  RunWriter large = RunWriter::create(folder / "large", small_manifest());
  large.write_plan(chain_plan(static_cast<int>(kMostReadableCalls) + 1));
  CHECK(!fs::exists(folder / "large" / "plan.json"));
  CHECK(RunReader::open(folder / "large").plan()->view().calls.size() == kMostReadableCalls + 1);
}

TEST_CASE("run: a stage that changed nothing has the file of the one before") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  const auto add = [&writer](const char* name, bool changed, const char* hash) {
    const StageRecord stage{.name = name, .changed = changed, .hash = hash};
    const bool repeats = writer.repeats_last_stage(stage);
    if (!repeats) write_file_atomic(writer.next_stage_file(name), name);
    writer.add_stage(stage);
    return repeats;
  };
  CHECK(!add("imported", false, "aa"));
  CHECK(add("fold", false, "aa"));
  CHECK(add("fuse", false, "aa"));
  CHECK(!add("loss", true, "bb"));
  CHECK(add("dead_code", false, "bb"));
  CHECK(!add("no_hash", false, ""));
  const RunReader reader = RunReader::open(folder / "run");
  std::vector<std::string> files;
  for (const StageRecord& stage : reader.stages()) {
    files.push_back(stage.file);
    CHECK(reader.open_stage(stage).size_bytes() > 0);
  }
  CHECK(files == std::vector<std::string>{"00-imported.onnx", "00-imported.onnx",
                                          "00-imported.onnx", "03-loss.onnx", "03-loss.onnx",
                                          "05-no_hash.onnx"});
}

TEST_CASE("run: stages from before FLOPs, bytes and near misses were in them are read") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  put(folder / "run" / "stages" / "stages.json",
      R"({"stages": [{"name": "imported", "file": "00-imported.onnx", "nodes_before": 5,)"
      R"( "nodes_after": 5, "milliseconds": 1.5, "changed": false, "hash": "ab",)"
      R"( "counters": {"flops": 7}}]})");
  const std::vector<StageRecord> stages = RunReader::open(folder / "run").stages();
  REQUIRE(stages.size() == 1);
  CHECK(stages[0].nodes_after == 5);
  CHECK(stages[0].flops_after == 0);
  CHECK(stages[0].near_misses.empty());
}

TEST_CASE("run: damaged stage lists and plans are refused") {
  const TemporaryFolder folder;
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_stage({.name = "imported"});
  const RunReader reader = RunReader::open(folder / "run");
  const fs::path file = folder / "run" / "stages" / "stages.json";
  const std::string good = get(file);
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "", ".hidden", "a/b"}) {
    CAPTURE(name);
    std::string text = good;
    text.replace(text.find("00-imported.onnx"), 16, name);
    put(file, text);
    const Error error = error_of([&] { reader.stages(); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "is no file name within stages/"));
  }
  put(file, "{\"stages\": 3}");
  CHECK(contains(error_of([&] { reader.stages(); }).message(), "expected an array"));
  put(folder / "run" / "plan.json", "[1]");
  CHECK(contains(error_of([&] { reader.plan(); }).message(), "expected an object, found an array"));
  put(folder / "run" / "plan.json", "{");
  CHECK(error_of([&] { reader.plan(); }).code() == ErrorCode::kBadInput);
  writer.write_plan(chain_plan(2));
  put(folder / "run" / "plan.bin", "TSPLAN\r\n and more");
  const Error damaged = error_of([&] { reader.plan(); });
  CHECK(damaged.code() == ErrorCode::kBadInput);
  CHECK(contains(damaged.message(), "plan.bin': the file is cut short"));
  fs::remove(folder / "run" / "plan.bin");
  const Error missing = error_of([&] { reader.plan(); });
  CHECK(contains(missing.message(),
                 "plan.json': 'plan.bin' is missing, of which this is only the readable form"));
  CHECK(contains(missing.hint(), "train --resume auto"));
  CHECK(missing.hint() == damaged.hint());
}

}  // namespace trainscope
