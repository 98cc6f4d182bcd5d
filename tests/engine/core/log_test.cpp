// Tests of the logger.
#include "engine/core/log.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

// A stream whose text can be asked for.
class Capture {
 public:
  Capture() : stream_(::open_memstream(&text_, &size_)) { REQUIRE(stream_ != nullptr); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    std::fclose(stream_);
    std::free(text_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

TEST_CASE("log: text lines carry the level, except info") {
  Capture capture;
  Logger log({.level = LogLevel::kDebug, .stream = capture.stream()});
  log.debug("a {}", 1);
  log.info("b");
  log.warning("c");
  log.error("d {}", "x");
  CHECK(capture.text() == "debug: a 1\nb\nwarning: c\nerror: d x\n");
}

TEST_CASE("log: a sink gets every level, whatever the stream shows") {
  std::vector<std::pair<LogLevel, std::string>> got;
  Logger log({.level = LogLevel::kOff,
              .stream = nullptr,
              .sink = [&got](LogLevel level, std::string_view message) {
                got.emplace_back(level, message);
              }});
  CHECK(log.enabled(LogLevel::kDebug));
  log.debug("a {}", 1);
  log.error("b");
  const std::vector<std::pair<LogLevel, std::string>> expected = {{LogLevel::kDebug, "a 1"},
                                                                  {LogLevel::kError, "b"}};
  CHECK(got == expected);
}

TEST_CASE("log: messages below the level are left out") {
  Capture capture;
  Logger log({.level = LogLevel::kWarning, .stream = capture.stream()});
  log.debug("a");
  log.info("b");
  log.warning("c");
  CHECK(capture.text() == "warning: c\n");
  CHECK_FALSE(log.enabled(LogLevel::kInfo));
  CHECK(log.enabled(LogLevel::kError));
  Capture silent;
  Logger off({.level = LogLevel::kOff, .stream = silent.stream()});
  off.error("x");
  CHECK(silent.text() == "");
}

TEST_CASE("log: JSON lines on the stream") {
  Capture capture;
  Logger log({.format = LogFormat::kJson, .stream = capture.stream()});
  log.warning("two\nlines \"quoted\"");
  const Json json = Json::parse(capture.text());
  CHECK(json.get<std::string>("level") == "warning");
  CHECK(json.get<std::string>("message") == "two\nlines \"quoted\"");
  CHECK(json.get<std::string>("time").size() == 24);
}

TEST_CASE("log: the file gets every level as JSON lines") {
  const TemporaryFolder folder;
  Logger log({.level = LogLevel::kError, .stream = nullptr});
  CHECK_FALSE(log.enabled(LogLevel::kError));
  log.open_file(Folder::open(folder.path()) / "log.jsonl");
  log.debug("first");
  log.error("second\n");
  const auto text = get(folder / "log.jsonl");
  const auto lines = split(text, '\n');
  REQUIRE(lines.size() == 3);
  CHECK(Json::parse(lines[0]).get<std::string>("level") == "debug");
  CHECK(Json::parse(lines[1]).get<std::string>("message") == "second\n");
}

TEST_CASE("log: lines of several threads stay whole") {
  const TemporaryFolder folder;
  Logger log({.stream = nullptr});
  log.open_file(Folder::open(folder.path()) / "log.jsonl");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 100; ++i) log.info("thread {} line {}", t, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto text = get(folder / "log.jsonl");
  const auto lines = split(text, '\n');
  REQUIRE(lines.size() == 401);
  for (std::size_t i = 0; i < 400; ++i) CHECK_NOTHROW(Json::parse(lines[i]));
}

}  // namespace
}  // namespace trainscope
