// Messages of workers: there and back, and what is none.
#include "engine/run/worker_protocol.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace trainscope::test {
namespace {

template <typename Message>
Message there_and_back(const Message& message) {
  const std::string line = worker_line(message);
  REQUIRE(line.ends_with('\n'));
  REQUIRE(line.find('\n') == line.size() - 1);
  const std::optional<WorkerMessage> read =
      worker_message(std::string_view(line).substr(0, line.size() - 1));
  REQUIRE(read.has_value());
  REQUIRE(std::holds_alternative<Message>(*read));
  return std::get<Message>(*read);
}

}  // namespace

TEST_CASE("worker protocol: every message comes back as it was") {
  const auto hello = there_and_back(WorkerHello{.program_version = "0.1.0", .process = 4711});
  CHECK(hello.protocol == kWorkerProtocol);
  CHECK(hello.program_version == "0.1.0");
  CHECK(hello.process == 4711);
  const auto progress =
      there_and_back(WorkerProgress{.work = "passes", .now = "fuse_gelu", .done = 3, .total = 38});
  CHECK(progress.now == "fuse_gelu");
  CHECK(progress.total == 38);
  const auto begin = there_and_back(
      WorkerBegin{.folder = "/a \"quoted\"\n\xC3\xA9", .from_step = 20, .to_step = 40});
  CHECK(begin.folder == "/a \"quoted\"\n\xC3\xA9");
  CHECK(begin.to_step == 40);
  const auto peak = there_and_back(
      WorkerPeak{.predicted_bytes = 1'234'567'890'123, .used_bytes = 7, .resident_bytes = 9});
  CHECK(peak.predicted_bytes == 1'234'567'890'123);
  CHECK(there_and_back(WorkerCheckpoint{.step = 8}).step == 8);
  const auto done = there_and_back(WorkerDone{.status = RunStatus::kInterrupted, .step = 5});
  CHECK(done.status == RunStatus::kInterrupted);
  const auto fault = there_and_back(WorkerFault{.code = ErrorCode::kUsage,
                                                .message = "no \x1b[31m colours",
                                                .where = {"a", "b"},
                                                .hint = "less"});
  CHECK(fault.code == ErrorCode::kUsage);
  CHECK(fault.message.find('\x1b') == std::string::npos);
  CHECK(fault.where == std::vector<std::string>{"a", "b"});
  CHECK(fault.hint == "less");
  there_and_back(WorkerStop{});
}

TEST_CASE("worker protocol: a loss keeps every bit, or is NaN") {
  for (const double loss :
       {0.1, 1.0 / 3.0, 2.3025850929940459, 5e-324, static_cast<double>(2.30258512F), 0.0, -7.25}) {
    CHECK(there_and_back(WorkerStep{.step = 1, .loss = loss}).loss == loss);
  }
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK(std::isnan(there_and_back(WorkerStep{.step = 1, .loss = loss}).loss));
  }
}

TEST_CASE("worker protocol: texts of any length fit a line") {
  const WorkerFault fault{.message = std::string(1 << 20, 'x'),
                          .where = std::vector<std::string>(500, std::string(1 << 16, 'y')),
                          .hint = std::string(1 << 20, 'z')};
  const std::string line = worker_line(fault);
  CHECK(line.size() <= kMostWorkerLineBytes);
  CHECK(worker_message(line).has_value());
}

TEST_CASE("worker protocol: other kinds and members are skipped, what is no message is refused") {
  CHECK_FALSE(worker_message(R"({"kind": "weather", "rain": true})").has_value());
  CHECK(worker_message(R"({"kind": "stop", "why": [1, 2]})").has_value());
  CHECK(worker_message(R"({"kind": "step", "step": 1, "loss": null, "milliseconds": 2, "a": 1})"));
  for (const char* line :
       {"", "{", "7", "[]", "null", "\"stop\"", "{}", R"({"kind": 7})", R"({"kind": "step"})",
        R"({"kind": "step", "step": "1", "loss": 1.0, "milliseconds": 2})",
        R"({"kind": "step", "step": -1, "loss": 1.0, "milliseconds": 2})",
        R"({"kind": "step", "step": 1, "loss": "low", "milliseconds": 2})",
        R"({"kind": "done", "status": "running", "step": 1})",
        R"({"kind": "error", "code": 2, "message": "x", "where": "here"})", "\xff\xfe"}) {
    CAPTURE(line);
    try {
      worker_message(line);
      FAIL("was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadInput);
    }
  }
}

TEST_CASE("worker protocol: lines come whole, however their bytes come") {
  const std::string text =
      worker_line(WorkerStop{}) + worker_line(WorkerCheckpoint{.step = 3}) + "\n" + "half a li";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    WorkerLines lines;
    std::vector<std::string> found;
    for (std::size_t i = 0; i < text.size(); i += piece) {
      lines.add(std::string_view(text).substr(i, piece));
      while (const std::optional<std::string> line = lines.next()) found.push_back(*line);
    }
    REQUIRE(found.size() == 3);
    CHECK(found[1] == R"({"kind":"checkpoint","step":3})");
    CHECK(found[2].empty());
  }
}

TEST_CASE("worker protocol: a line without an end is refused before it fills memory") {
  WorkerLines lines;
  lines.add(std::string(kMostWorkerLineBytes, 'x'));
  CHECK_FALSE(lines.next().has_value());
  CHECK_THROWS_AS(lines.add("x"), Error);
  // Many short ones at once are none too long.
  WorkerLines many;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "abcdefgh\n";
  many.add(text);
  int count = 0;
  while (many.next()) ++count;
  CHECK(count == 20'000);
}

}  // namespace trainscope::test
