// Rewrite logs in a run's folder.
#include <doctest/doctest.h>

#include <filesystem>

#include "engine/bundle/reader.h"
#include "engine/bundle/writer.h"
#include "tests/engine/bundle/run_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {

TEST_CASE("run: a stage's rewrite log lies beside its graph") {
  const TemporaryFolder folder;
  const std::filesystem::path stages = folder / "run" / "stages";
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_stage({.name = "imported"});
  writer.add_stage({.name = "dead_code", .changed = true}, "{\"kind\":\"dead\"}\n");
  CHECK(get(stages / "01-dead_code.rewrites.jsonl") == "{\"kind\":\"dead\"}\n");
  CHECK_FALSE(std::filesystem::exists(stages / "00-imported.rewrites.jsonl"));
  const RunReader reader = RunReader::open(folder / "run");
  CHECK(reader.stage_rewrites(reader.stages()[0]).empty());
  CHECK(reader.stage_rewrites(reader.stages()[1]) == "{\"kind\":\"dead\"}\n");
}

TEST_CASE("run: a stage that repeats a file leaves that file's rewrite log as it is") {
  const TemporaryFolder folder;
  const std::filesystem::path stages = folder / "run" / "stages";
  RunWriter writer = RunWriter::create(folder / "run", small_manifest());
  writer.add_stage({.name = "fold", .changed = true, .hash = "aa"}, "{\"kind\":\"dead\"}\n");
  writer.add_stage({.name = "fuse", .changed = false, .hash = "aa"}, "{\"kind\":\"rule\"}\n");
  CHECK(get(stages / "00-fold.rewrites.jsonl") == "{\"kind\":\"dead\"}\n");
  CHECK_FALSE(std::filesystem::exists(stages / "01-fuse.rewrites.jsonl"));
}

}  // namespace trainscope
