// Folders in which a stranger, or a killed process, has left something: what is refused and swept.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "engine/bundle/reader.h"
#include "engine/bundle/writer.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/engine/bundle/run_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// What a stranger may have put in the place of an entry.
void put_link(const fs::path& path, const fs::path& outside) {
  fs::remove_all(path);
  fs::create_symlink(outside, path);
}

void put_fifo(const fs::path& path, const fs::path&) {
  fs::remove_all(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
}

void put_other_kind(const fs::path& path, const fs::path&) {
  if (fs::is_directory(path)) {
    fs::remove_all(path);
    put(path, "a file");
  } else {
    fs::remove(path);
    fs::create_directory(path);
  }
}

void put_hard_link(const fs::path& path, const fs::path& outside) {
  fs::remove(path);
  fs::create_hard_link(outside, path);
}

// A run with every file, whose entry `name` was replaced; outside of it a file and a folder.
struct StrangersRun {
  TemporaryFolder folder;
  fs::path run = folder / "run";
  StrangersRun() {
    {
      RunWriter writer = RunWriter::create(run, small_manifest());
      writer.also_write({.csv = true});
      writer.write_config("");
      writer.write_plan(chain_plan(2));
      writer.add_stage({.name = "imported"});
      writer.add_step(step_record(1));
      write_file_atomic(writer.model_file(), "model");
      write_file_atomic(writer.log_file(), "{}\n");
    }
    put(folder / "file", "line\nno line end");
    fs::create_directory(folder / "folder");
    put(folder / "folder/file", "in a folder");
  }

  // Everything that resume could change: contents by path.
  std::map<fs::path, std::string> contents() const {
    std::map<fs::path, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      found[entry.path()] = entry.is_regular_file() ? get(entry.path()) : "";
    }
    return found;
  }

  Error resume() const {
    return error_of([this] { RunWriter::resume(RunLock::take(run), small_session(1)); });
  }
};

TEST_CASE("run: what a stranger put in the place of an entry is refused, nothing is written") {
  using Attack = void (*)(const fs::path& path, const fs::path& outside);
  const Attack attacks[] = {put_link, put_fifo, put_other_kind};
  for (const char* name : {"manifest.json", "config.toml", "plan.bin", "plan.json", "metrics.jsonl",
                           "metrics.csv", "log.jsonl", "model.onnx", "model.onnx.data", "stages",
                           "stages/stages.json", "checkpoints"}) {
    for (const Attack attack : attacks) {
      CAPTURE(name);
      const StrangersRun it;
      const bool is_folder = fs::is_directory(it.run / name);
      attack(it.run / name, it.folder / (is_folder ? "folder" : "file"));
      const auto before = it.contents();
      const Error error = it.resume();
      CHECK(error.code() == ErrorCode::kBadInput);
      CHECK(contains(error.message(), std::string(name) + "': it is "));
      CHECK(it.contents() == before);
    }
  }
}

TEST_CASE("run: a file that grows must not have another name outside") {
  for (const char* name : {"metrics.jsonl", "log.jsonl"}) {
    const StrangersRun it;
    put_hard_link(it.run / name, it.folder / "file");
    const Error error = it.resume();
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), std::string(name) + "': it has 2 hard links"));
    CHECK(get(it.folder / "file") == "line\nno line end");
  }
  // Files that are replaced are others afterwards.
  const StrangersRun it;
  fs::create_hard_link(it.run / "manifest.json", it.folder / "manifest");
  const std::string before = get(it.folder / "manifest");
  CHECK_NOTHROW(RunWriter::resume(RunLock::take(it.run), small_session(1)));
  CHECK(get(it.folder / "manifest") == before);
}

TEST_CASE("run: the folder itself may be named by a link") {
  const StrangersRun it;
  fs::create_directory_symlink("run", it.folder / "alias");
  CHECK(RunReader::open(it.folder / "alias").metrics().steps.size() == 1);
  CHECK_NOTHROW(RunWriter::resume(RunLock::take(it.folder / "alias"), small_session(1)));
}

TEST_CASE("run: a folder with a link to an empty one is not empty") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "outside");
  fs::create_directories(folder / "run");
  fs::create_directory_symlink("../outside", folder / "run/checkpoints");
  const Error error = error_of([&] { RunWriter::create(folder / "run", small_manifest()); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(list_directory(folder / "run") == std::vector<std::string>{"checkpoints"});
}

TEST_CASE("run: a reader neither follows links nor waits for a FIFO's writer") {
  for (const bool link : {true, false}) {
    const StrangersRun it;
    const auto put_at = [&](const char* name) {
      if (link) put_link(it.run / name, it.folder / "file");
      if (!link) put_fifo(it.run / name, {});
    };
    const RunReader reader = RunReader::open(it.run);
    const StageRecord stage = reader.stages().at(0);
    for (const char* name : {"metrics.jsonl", "plan.bin", "stages/stages.json",
                             "stages/00-imported.onnx", "manifest.json"}) {
      put_at(name);
    }
    CHECK(error_of([&] { reader.metrics(); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { reader.plan(); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { reader.stages(); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { reader.open_stage(stage); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { RunReader::open(it.run); }).code() == ErrorCode::kBadInput);
    put_at("checkpoints");
    CHECK(error_of([&] { reader.checkpoints_folder(); }).code() == ErrorCode::kBadInput);
    put_at("stages");
    CHECK(error_of([&] { reader.stages(); }).code() == ErrorCode::kBadInput);
  }
}

TEST_CASE("run: what killed processes left is swept when the next one begins") {
  const TemporaryFolder folder;
  { RunWriter::create(folder / "run", small_manifest()); }
  const auto put_leftovers = [&] {
    for (const char* name : {"run", "run/stages", "run/checkpoints"}) {
      put(folder / name / ".trainscope-12-0.tmp", "half");
      put(folder / name / ".trainscope-999-1.tmp", "half");
      put(folder / name / "notes.txt", "mine");
    }
  };
  put_leftovers();
  const RunWriter writer = RunWriter::resume(RunLock::take(folder / "run"), small_session());
  for (const char* name : {"run", "run/sessions/1/stages", "run/checkpoints"}) {
    CAPTURE(name);
    const std::vector<std::string> names = list_directory(folder / name);
    CHECK(std::ranges::none_of(names, is_temporary_name));
    CHECK(std::ranges::count(names, "notes.txt") == 1);
  }
  fs::create_directories(folder / "killed/stages");
  put(folder / "killed/.trainscope-12-0.tmp", "{");
  put(folder / "killed/stages/.trainscope-12-0.tmp", "{");
  const RunWriter created = RunWriter::create(folder / "killed", small_manifest());
  CHECK(std::ranges::none_of(list_directory(folder / "killed"), is_temporary_name));
  CHECK(list_directory(folder / "killed/stages").empty());
}

}  // namespace
}  // namespace trainscope
