// Plans and stages of earlier sessions: kept apart, whatever a kill has left.
#include "engine/bundle/session_folders.h"

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

// Stages and a plan of so many calls, as one session writes them.
void write_session(RunWriter& writer, int calls) {
  write_file_atomic(writer.next_stage_file("imported"), std::to_string(calls));
  writer.add_stage({.name = "imported", .nodes_after = calls, .hash = "aa"});
  writer.write_plan(chain_plan(calls));
}

RunWriter resume(const fs::path& run) {
  return RunWriter::resume(RunLock::take(run), small_session(1));
}

// A run of one session with three calls.
fs::path one_session(const TemporaryFolder& folder) {
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  write_session(writer, 3);
  return folder / "run";
}

std::size_t calls_of(const RunReader& run, std::int64_t session) {
  const auto plan = run.plan(session);
  const std::vector<StageRecord> stages = run.stages(session);
  REQUIRE(plan.has_value());
  REQUIRE(stages.size() == 1);
  const std::size_t calls = plan->view().calls.size();
  CHECK(stages[0].nodes_after == static_cast<std::int64_t>(calls));
  const MappedFile file = run.open_stage(stages[0], session);
  CHECK(get(file.path()) == std::to_string(calls));
  return calls;
}

}  // namespace

TEST_CASE("sessions: each keeps its plan and stages, the newest at the paths that they have") {
  const TemporaryFolder folder;
  const fs::path run = one_session(folder);
  CHECK(!fs::exists(run / "sessions"));
  for (const int calls : {4, 5}) {
    RunWriter writer = resume(run);
    CHECK(!fs::exists(run / "plan.bin"));
    CHECK(!fs::exists(run / "plan.json"));
    write_session(writer, calls);
  }
  const RunReader reader = RunReader::open(run);
  CHECK(calls_of(reader, kNewestSession) == 5);
  CHECK(calls_of(reader, 1) == 3);
  CHECK(calls_of(reader, 2) == 4);
  CHECK(calls_of(reader, 3) == 5);
  for (const char* name : {"plan.bin", "plan.json", "stages/stages.json", "sessions/1/plan.bin",
                           "sessions/2/stages/00-imported.onnx"}) {
    CHECK(fs::is_regular_file(run / name));
  }
  CHECK(!fs::exists(run / "sessions/3"));
  const Error none = error_of([&] { reader.plan(4); });
  CHECK(none.code() == ErrorCode::kUsage);
  CHECK(none.message() == "the run has no session 4: it has 3");
  CHECK(error_of([&] { reader.stages(-1); }).code() == ErrorCode::kUsage);
}

TEST_CASE("sessions: a kill between any two moves loses nothing") {
  // What has moved when the process is killed; the manifest still names one session.
  const std::vector<std::vector<std::string>> kills = {
      {}, {"plan.json"}, {"plan.json", "plan.bin"}, {"plan.json", "plan.bin", "stages"}};
  for (const std::vector<std::string>& moved : kills) {
    for (const bool began_stages : {false, true}) {
      CAPTURE(moved.size());
      const TemporaryFolder folder;
      const fs::path run = one_session(folder);
      fs::create_directories(run / "sessions/1");
      for (const std::string& name : moved) fs::rename(run / name, run / "sessions/1" / name);
      if (began_stages && moved.size() == 3) fs::create_directory(run / "stages");
      CHECK(calls_of(RunReader::open(run), kNewestSession) == 3);
      CHECK(calls_of(RunReader::open(run), 1) == 3);
      { resume(run); }  // killed before it has written its own
      CHECK(!RunReader::open(run).plan().has_value());
      CHECK(RunReader::open(run).stages().empty());
      CHECK(calls_of(RunReader::open(run), 1) == 3);
      RunWriter third = resume(run);
      write_session(third, 7);
      const RunReader reader = RunReader::open(run);
      CHECK(calls_of(reader, 3) == 7);
      CHECK(calls_of(reader, 1) == 3);
      CHECK(!reader.plan(2).has_value());
      CHECK(!fs::exists(run / "sessions/2"));
    }
  }
}

TEST_CASE("sessions: what is there already is not replaced, nothing is written") {
  for (const char* name : {"plan.bin", "plan.json", "stages"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const fs::path run = one_session(folder);
    fs::create_directories(run / "sessions/1");
    fs::copy(run / name, run / "sessions/1" / name, fs::copy_options::recursive);
    const Error error = error_of([&] { resume(run); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "session 1 wrote one of them"));
    CHECK(RunReader::open(run).manifest().sessions.size() == 1);
    CHECK(calls_of(RunReader::open(run), kNewestSession) == 3);
  }
}

TEST_CASE("sessions: links and files in the place of folders are refused, nothing is written") {
  for (const char* name : {"sessions", "sessions/1"}) {
    for (const bool link : {true, false}) {
      CAPTURE(name);
      const TemporaryFolder folder;
      const fs::path run = one_session(folder);
      fs::create_directories(folder / "outside");
      fs::create_directories((run / name).parent_path());
      if (link) fs::create_directory_symlink(folder / "outside", run / name);
      if (!link) put(run / name, "a file");
      const Error error = error_of([&] { resume(run); });
      CHECK(error.code() == ErrorCode::kBadInput);
      CHECK(contains(error.message(), std::string(name) + "': it is "));
      CHECK(fs::is_empty(folder / "outside"));
      CHECK(calls_of(RunReader::open(run), kNewestSession) == 3);
    }
  }
}

TEST_CASE("sessions: half of a file that a kill has left does not move") {
  const TemporaryFolder folder;
  const fs::path run = one_session(folder);
  put(run / "stages/.trainscope-12-0.tmp", "half");
  resume(run);
  CHECK(!fs::exists(run / "sessions/1/stages/.trainscope-12-0.tmp"));
  CHECK(fs::exists(run / "sessions/1/stages/00-imported.onnx"));
}

TEST_CASE("sessions: a run of format 1 becomes one of format 2 as it goes on") {
  const TemporaryFolder folder;
  fs::copy(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/run-format-1/run", folder / "run",
           fs::copy_options::recursive);
  RunWriter writer = resume(folder / "run");
  write_session(writer, 4);
  const RunReader reader = RunReader::open(folder / "run");
  CHECK(reader.manifest().format == 2);
  CHECK(calls_of(reader, 2) == 4);
  CHECK(reader.plan(1)->view().calls.size() == 12);
  CHECK(reader.stages(1).size() == 36);
  CHECK(reader.open_stage(reader.stages(1)[35], 1).size_bytes() > 0);
}

TEST_CASE("sessions: what a failed step has left moves with its session") {
  const TemporaryFolder folder;
  const fs::path run = one_session(folder);
  fs::create_directory(run / "failure");
  put(run / "failure/failure.json", "{}");
  resume(run);
  CHECK(!fs::exists(run / "failure"));
  CHECK(fs::exists(run / "sessions/1/failure/failure.json"));
}

}  // namespace trainscope
