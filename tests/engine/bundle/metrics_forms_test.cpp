// Metrics as a table and as event files; tensorboard_test.py decodes whole event files.
#include <doctest/doctest.h>

#include <limits>

#include "engine/bundle/metrics_csv.h"
#include "engine/bundle/reader.h"
#include "engine/bundle/tensorboard.h"
#include "engine/bundle/writer.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepRecord step_row(std::int64_t step, double loss = 2.5) {
  return {.step = step,
          .loss = loss,
          .learning_rate = 0.001,
          .gradient_norm = kNan,
          .step_ms = 12.5,
          .samples = 8,
          .tokens = 512};
}

RunSession session(std::int64_t from_step) {
  return {.command = {"trainscope"}, .program_version = "0.1.0", .from_step = from_step};
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string& name : list_directory(folder)) {
    if (contains(name, "tfevents")) files.push_back(folder / name);
  }
  return files;
}

TEST_CASE("metrics csv: a row for each record, empty cells for what is not there") {
  const Metrics metrics{
      .steps = {step_row(1), step_row(2, kNan)},
      .evaluations = {
          {.step = 1, .loss = 2.25, .accuracy = 0.5, .examples = 40, .milliseconds = 8.5}}};
  CHECK(metrics_csv(metrics) ==
        "kind,step,loss,accuracy,learning_rate,gradient_norm,step_ms,samples,tokens,examples,"
        "milliseconds\n"
        "step,1,2.5,,0.001,,12.5,8,512,,\n"
        "evaluation,1,2.25,0.5,,,,,,40,8.5\n"
        "step,2,,,0.001,,12.5,8,512,,\n");
}

TEST_CASE("run: the table of a resumed session lacks what is done again") {
  const TemporaryFolder folder;
  {
    RunWriter writer = RunWriter::create(folder / "r", {.sessions = {session(0)}});
    writer.also_write({.csv = true});
    for (std::int64_t step = 1; step <= 5; ++step) writer.add_step(step_row(step, 1.0));
  }
  {
    // Without asking for a table: the one that is there goes on.
    RunWriter writer = RunWriter::resume(RunLock::take(folder / "r"), session(3));
    writer.also_write({});
    writer.add_step(step_row(4, 2.0));
    writer.add_evaluation({.step = 4, .loss = 3.0, .examples = 1, .milliseconds = 1.0});
    writer.finish(RunStatus::kFinished, 0);
  }
  CHECK(get(folder / "r/metrics.csv") == metrics_csv(RunReader::open(folder / "r").metrics()));
  CHECK(contains(get(folder / "r/metrics.csv"), "\nstep,4,2.0,"));
  CHECK(!contains(get(folder / "r/metrics.csv"), "\nstep,5,"));
}

TEST_CASE("run: a table that begins with a resumed session has the steps before it") {
  const TemporaryFolder folder;
  {
    RunWriter writer = RunWriter::create(folder / "r", {.sessions = {session(0)}});
    writer.also_write({});
    writer.add_step(step_row(1));
    writer.add_step(step_row(2));
  }
  CHECK(!fs::exists(folder / "r/metrics.csv"));
  RunWriter writer = RunWriter::resume(RunLock::take(folder / "r"), session(2));
  writer.also_write({.csv = true});
  writer.add_step(step_row(3));
  CHECK(get(folder / "r/metrics.csv") == metrics_csv(RunReader::open(folder / "r").metrics()));
}

TEST_CASE("crc32c: the check value of its catalogue, and of nothing") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xE3069283U);
  CHECK(crc32c({}) == 0U);
  const std::string zeros(32, '\0');  // RFC 3720, B.4
  CHECK(crc32c(std::as_bytes(std::span(zeros))) == 0x8A9136AAU);
}

TEST_CASE("event files: each session begins one of its own") {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    EventWriter writer(Folder::open(folder.path()), i);
    writer.add(step_row(i + 1));
    writer.sync();
  }
  const std::vector<fs::path> files = event_files(folder.path());
  REQUIRE(files.size() == 3);
  for (const fs::path& file : files) CHECK(fs::file_size(file) == fs::file_size(files[0]));
}

TEST_CASE("event files: the first frame is the version, to the byte") {
  // Length 26; message: wall_time 1.0, step 0, file_version "brain.Event:2".
  const std::string frame = event_file_header(1.0);
  REQUIRE(frame.size() == 8 + 4 + 26 + 4);
  CHECK(frame.substr(0, 8) == std::string("\x1a\0\0\0\0\0\0\0", 8));
  CHECK(frame.substr(12, 26) ==
        std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\0\x1a\x0d", 13) + "brain.Event:2");
}

TEST_CASE("event files: a folder that cannot be written") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "gone");
  const Folder gone = Folder::open(folder / "gone");
  fs::remove(folder / "gone");
  const Error error = error_of([&] { EventWriter(gone, 0); });
  CHECK(error.code() == ErrorCode::kIo);
}

TEST_CASE("metrics: a step's time is the median of all") {
  Metrics metrics;
  CHECK(metrics.median_step_ms() == 0.0);
  for (const double ms : {90.0, 1.0, 2.0}) {
    metrics.steps.push_back(step_row(1));
    metrics.steps.back().step_ms = ms;
  }
  CHECK(metrics.median_step_ms() == 2.0);
}

}  // namespace
}  // namespace trainscope
