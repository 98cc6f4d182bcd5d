// Damaged, cut, empty, foreign and growing runs: a message in the panels, never a crash.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/core/file.h"
#include "gui/data/truncated_files.h"
#include "gui/panels/panels.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  }
  std::ranges::sort(files);
  return files;
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Some bytes changed, the end cut off, nothing left, everything replaced, or by what a file of
// another run has.
std::string damaged(std::string bytes, const std::vector<std::string>& foreign,
                    std::mt19937& random) {
  const std::size_t size = bytes.size();
  switch (random() % 5) {
    case 0:
      for (int i = 0; i < 3 && size > 0; ++i) bytes[random() % size] = static_cast<char>(random());
      return bytes;
    case 1:
      return bytes.substr(0, size == 0 ? 0 : random() % size);
    case 2:
      return {};
    case 3:
      return foreign[random() % foreign.size()];
    default:
      return std::string(size, static_cast<char>(random()));
  }
}

void look_at_all(WindowDriver& window) {
  for (const Panel& panel : all_panels()) {
    window.app().show_only(panel.id);
    window.step(2);
    CHECK_FALSE(window.items().items().empty());
  }
}

void look_at_all(const fs::path& run) {
  WindowDriver window(run);
  look_at_all(window);
}

std::vector<std::string> contents_of(const fs::path& folder) {
  std::vector<std::string> contents;
  for (const fs::path& file : files_of(folder)) {
    contents.push_back(read_file(folder / file, std::size_t{1} << 26));
  }
  return contents;
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("damaged runs: every panel draws something, whatever the files hold") {
  // TRAINSCOPE_DAMAGED_RUNS=2000 in nightly.sh.
  const char* wanted = std::getenv("TRAINSCOPE_DAMAGED_RUNS");
  const int runs = wanted == nullptr ? 200 : std::atoi(wanted);
  std::mt19937 random(1);
  const std::vector<fs::path> files = files_of(test::image_run().folder());
  REQUIRE(files.size() > 5);
  const std::vector<std::string> foreign = contents_of(test::text_run().folder());
  const TemporaryFolder folder;
  const fs::path copy = folder / "run";
  fs::copy(test::image_run().folder(), copy, fs::copy_options::recursive);
  for (int i = 0; i < runs; ++i) {
    const fs::path& file = files[random() % files.size()];
    INFO(i, " ", file.string());
    const std::string whole = read_file(copy / file, std::size_t{1} << 26);
    write_bytes(copy / file, damaged(whole, foreign, random));
    WindowDriver window(copy);
    look_at_all(window);
    write_bytes(copy / file, whole);
    if (i % 4 != 0) continue;
    // What was missing is there now: a run that grows.
    window.workbench().refresh();
    look_at_all(window);
  }
}

TEST_CASE("damaged runs: the panels that need a file say what is wrong with it, by its name") {
  struct Need {
    const char* file;
    Topic topic;
    std::vector<const char*> panels;
  };
  const Need needs[] = {{"manifest.json",
                         Topic::kSource,
                         {"overview", "stages", "graph", "memory", "timeline", "kernels"}},
                        {"stages/stages.json", Topic::kStages, {"stages", "graph"}},
                        {"plan.bin", Topic::kPlan, {"memory"}},
                        {"events.cols", Topic::kProfile, {"timeline", "kernels", "roofline"}}};
  const TemporaryFolder folder;
  const fs::path copy = folder / "run";
  fs::copy(test::text_run().folder(), copy, fs::copy_options::recursive);
  for (const Need& need : needs) {
    const fs::path file = copy / need.file;
    const std::string whole = read_file(file, std::size_t{1} << 26);
    for (const std::string& bytes :
         {std::string("this is no such file\n"), std::string(), whole.substr(0, 40)}) {
      const std::string file_and_size = fmt::format("{}, {} bytes", need.file, bytes.size());
      INFO(file_and_size);
      write_bytes(file, bytes);
      WindowDriver window(copy);
      for (const char* panel : need.panels) {
        INFO(panel);
        window.app().show_only(panel);
        window.step(2);
        CHECK(window.says(std::string("main/") + panel, file.filename().string()));
        const std::string& message = window.workbench().run()->message(need.topic).text;
        CHECK_MESSAGE(message.find(file.filename()) != std::string::npos, message);
      }
    }
    write_bytes(file, whole);
  }
}

TEST_CASE(
    "damaged runs: nothing, an empty folder, a file that is no model, a folder that is a file") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  write_bytes(folder / "text.onnx", "this is no model");
  write_bytes(folder / "manifest.json", "{}");
  for (const char* name : {"empty", "text.onnx", "nothing", "manifest.json", ""}) {
    INFO(name);
    look_at_all(folder / name);
  }
}

TEST_CASE("damaged runs: files that go away while they are shown") {
  const TemporaryFolder folder;
  const fs::path copy = folder / "run";
  fs::copy(test::text_run().folder(), copy, fs::copy_options::recursive);
  WindowDriver window(copy);
  window.key("F4");
  fs::remove_all(copy);
  window.workbench().refresh();
  for (const Panel& panel : all_panels()) {
    window.app().show_only(panel.id);
    window.step(2);
  }
  CHECK_FALSE(window.items().items().empty());
}

TEST_CASE("damaged runs: files that are cut short while they are shown") {
  survive_truncated_files();
  const TemporaryFolder folder;
  const fs::path copy = folder / "run";
  for (const char* file : {"plan.bin", "events.cols"}) {
    INFO(file);
    fs::remove_all(copy);
    fs::copy(test::text_run().folder(), copy, fs::copy_options::recursive);
    WindowDriver window(copy);
    fs::resize_file(copy / file, 100);
    for (const bool knows : {false, true}) {
      if (knows) CHECK(window.workbench().refresh());
      for (const Panel& panel : all_panels()) {
        window.app().show_only(panel.id);
        window.step(2);
        CHECK_FALSE(window.items().items().empty());
      }
    }
  }
}

TEST_CASE("growing runs: new steps are seen") {
  const TemporaryFolder folder;
  const fs::path copy = folder / "run";
  fs::copy(test::text_run().folder(), copy, fs::copy_options::recursive);
  WindowDriver window(copy);
  const auto steps = [&] {
    window.step();
    return window.items().find("main/overview/card/steps")->number;
  };
  CHECK(steps() == 5.0);
  std::ofstream(copy / "metrics.jsonl", std::ios::app)
      << R"({"kind":"step","step":6,"loss":0.5,"learning_rate":0.1,"gradient_norm":null,)"
      << R"("step_ms":2.0,"samples":4,"tokens":0})"
      << "\n";
  CHECK(window.workbench().refresh());
  CHECK(steps() == 6.0);
  CHECK_FALSE(window.workbench().refresh());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
