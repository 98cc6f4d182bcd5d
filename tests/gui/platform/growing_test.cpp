// Runs that are written while they are shown: nothing of them is lost, wherever the writer is just
// now.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

fs::path copy_of(const test::MadeRun& run, const TemporaryFolder& folder) {
  fs::copy(run.folder(), folder / "run", fs::copy_options::recursive);
  return folder / "run";
}

void append(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::app | std::ios::binary) << bytes;
}

constexpr std::string_view kSixthStep =
    R"({"kind":"step","step":6,"loss":0.5,"learning_rate":0.1,"gradient_norm":null,)"
    R"("step_ms":2.0,"samples":4,"tokens":0})"
    "\n";

double steps_shown(WindowDriver& window) {
  window.step();
  return window.items().find("main/overview/card/steps")->number;
}

// The profile of steps that were recorded one after the other: what is there after each.
std::vector<std::string> profiles_of(std::size_t calls, std::uint32_t steps) {
  std::string bytes;
  profiler::EventWriter writer({.threads = 1}, [&](std::span<const std::byte> more) {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
  });
  std::vector<std::string> profiles;
  std::vector<profiler::Event> step;
  for (const profiler::Event& event : test::steps_of(calls, steps)) {
    step.push_back(event);
    if (event.kind != profiler::EventKind::kStep) continue;
    writer.add(step, 0);
    profiles.push_back(bytes);
    step.clear();
  }
  return profiles;
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("growing runs: new steps are seen") {
  const TemporaryFolder folder;
  const fs::path run = copy_of(test::text_run(), folder);
  WindowDriver window(run);
  CHECK(steps_shown(window) == 5.0);
  append(run / "metrics.jsonl", kSixthStep);
  CHECK(window.workbench().refresh());
  CHECK(steps_shown(window) == 6.0);
  CHECK_FALSE(window.workbench().refresh());
}

TEST_CASE("growing runs: a step whose line is half written is seen when the rest comes") {
  const TemporaryFolder folder;
  const fs::path run = copy_of(test::text_run(), folder);
  WindowDriver window(run);
  const std::size_t half = kSixthStep.size() / 2;
  append(run / "metrics.jsonl", kSixthStep.substr(0, half));
  for (const char* panel : {"overview", "runs"}) {
    INFO(panel);
    CHECK((std::string_view(panel) == "runs" || window.workbench().refresh()));
    window.app().show_only(panel);
    window.step(2);
    CHECK_FALSE(window.says(std::string("main/") + panel, "metrics.jsonl"));  // nothing is wrong
    CHECK(window.workbench().run()->metrics().steps.size() == 5);
  }
  window.app().show_only("overview");
  CHECK(steps_shown(window) == 5.0);
  append(run / "metrics.jsonl", kSixthStep.substr(half));
  CHECK(window.workbench().refresh());
  CHECK(steps_shown(window) == 6.0);
  CHECK(window.workbench().run()->metrics().steps.back().loss == 0.5);
}

TEST_CASE("growing runs: a chunk of the profile that is half written is seen when the rest comes") {
  const TemporaryFolder folder;
  const fs::path run = copy_of(test::text_run(), folder);
  const std::size_t calls = RunReader::open(run).plan().value().view().calls.size();
  const std::vector<std::string> profiles = profiles_of(calls, 2);
  REQUIRE(profiles.size() == 2);
  const fs::path file = run / "events.cols";
  const auto shown = [](WindowDriver& window) {
    std::string text;
    for (const char* panel : {"timeline", "kernels", "roofline", "overview"}) {
      window.app().show_only(panel);
      window.step(2);
      window.workbench().request("timeline.fit");  // what was seen stays seen else
      window.step(2);
      text += window.drawn_text();
    }
    return text;
  };
  const auto shown_of = [&](std::string_view bytes) {
    write_file_atomic(file, bytes);
    WindowDriver window(run);
    return shown(window);
  };
  const std::string whole = shown_of(profiles[1]);
  const std::string first = shown_of(profiles[0]);
  REQUIRE(whole != first);
  WindowDriver window(run);
  // The header, half of the first chunk, that one, half of the second, and all.
  const std::size_t half = (profiles[0].size() + profiles[1].size()) / 2;
  write_file_atomic(file, std::string_view(profiles[0]).substr(0, profiles[0].size() / 2));
  CHECK(window.workbench().refresh());
  shown(window);
  CHECK(window.says("main/overview/", "no events yet"));
  write_file_atomic(file, profiles[0]);
  CHECK(window.workbench().refresh());
  const bool is_first = shown(window) == first;
  CHECK(is_first);
  append(file, std::string_view(profiles[1]).substr(profiles[0].size(), half - profiles[0].size()));
  CHECK(window.workbench().refresh());
  const bool is_still_first = shown(window) == first;
  CHECK(is_still_first);
  append(file, std::string_view(profiles[1]).substr(half));
  CHECK(window.workbench().refresh());
  const bool is_whole = shown(window) == whole;
  CHECK(is_whole);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
