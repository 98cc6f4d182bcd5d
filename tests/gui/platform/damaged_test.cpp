// Damaged, cut, empty and foreign runs: a message in the panels, or what the files say still; never
// a crash.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"
#include "gui/data/truncated_files.h"
#include "gui/panels/panels.h"
#include "gui/workbench/notes.h"
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

std::vector<std::string> bytes_of_files(const fs::path& folder) {
  std::vector<std::string> contents;
  for (const fs::path& file : files_of(folder)) {
    contents.push_back(read_file(folder / file, std::size_t{1} << 26));
  }
  return contents;
}

// Rows, numbers and marks of data: what a panel shows of a run, wherever in it.
using Content = std::set<std::string>;
Content content_of(const WindowDriver& window, std::string_view panel) {
  Content content;
  for (const Item* item : window.items().below(fmt::format("main/{}/", panel))) {
    const bool is_data = item->kind == ItemKind::kRow || item->kind == ItemKind::kNumber ||
                         item->kind == ItemKind::kMark;
    if (!is_data) continue;
    std::string path = item->path;
    std::erase_if(path, [](char c) { return c >= '0' && c <= '9'; });
    content.insert(fmt::format("{} {} {}", path, item->label, item->value));
  }
  return content;
}

// Where a panel has nothing to show it says why: a title, and sentences.
bool says_why(const WindowDriver& window, std::string_view panel) {
  std::size_t letters = 0;
  for (const Item* item : window.items().below(fmt::format("main/{}/", panel))) {
    if (item->path.find("/empty/") != std::string::npos) letters += item->label.size();
  }
  return letters > 20;
}

// Budget plans for a while before it shows what it has planned.
bool is_planning(const Panel& panel, WindowDriver& window) {
  return panel.id == "budget" && window.workbench().under_way;
}

// Each panel shows something, or says why there is nothing.
void look_at_all(WindowDriver& window) {
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.step(2);
    const bool is_told = says_why(window, panel.id);
    CHECK((is_told || is_planning(panel, window) || !content_of(window, panel.id).empty()));
  }
}

void look_at_all(const fs::path& run) {
  WindowDriver window(run);
  look_at_all(window);
}

void select_something(WindowDriver& window) {
  const PlanLinks* links = window.workbench().links();
  if (links != nullptr && links->plan().calls.size() > 3) {
    CHECK(window.workbench().select_named("call:3"));
  }
}

// What each panel shows, by its name.
using Contents = std::map<std::string, Content, std::less<>>;
Contents contents_of(WindowDriver& window) {
  Contents contents;
  select_something(window);
  for (const Panel& panel : all_panels()) {
    window.app().show_only(panel.id);
    window.settle();
    contents[std::string(panel.id)] = content_of(window, panel.id);
  }
  return contents;
}

// Something that is damaged, and what each panel shows of it while it is whole, or of what takes
// the place of its files.
struct Specimen {
  fs::path path;                     // a run's folder, or a file
  std::vector<std::string> foreign;  // files of something else
  std::vector<Contents> known = {};

  std::vector<fs::path> files() const {
    if (!fs::is_directory(path)) return std::vector<fs::path>(1);
    return files_of(path);
  }
  bool knows(std::string_view panel, const Content& shown) const {
    return std::ranges::any_of(known, [&](const Contents& contents) {
      const Content& whole = contents.find(panel)->second;
      return std::ranges::any_of(shown,
                                 [&](const std::string& item) { return whole.contains(item); });
    });
  }
};

Contents contents_of(const fs::path& path) {
  WindowDriver window(path);
  return contents_of(window);
}

// Each panel says what is wrong, or shows what is known; Budget once it has planned, for which not
// every look waits.
void check_panels(WindowDriver& window, const Specimen& specimen, bool waits) {
  select_something(window);
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.step(2);
    if (waits) window.settle();
    if (is_planning(panel, window)) continue;
    const bool is_told = says_why(window, panel.id);
    CHECK((is_told || specimen.knows(panel.id, content_of(window, panel.id))));
  }
}

// Notes are told of in the status bar, or they are there.
void check_notes(WindowDriver& window, const fs::path& file, std::size_t count) {
  if (file.filename() != kNotesFile) return;
  const Workbench& bench = window.workbench();
  if (bench.notice.is_error) {
    CHECK(bench.notice.text.find(kNotesFile) != std::string::npos);
  } else {
    CHECK(bench.notes.notes.size() == count);
  }
}

// One of its files is damaged, looked at, and put right again; every fourth time while it is open:
// a run that grows.
void damage(const Specimen& specimen, int turn, std::mt19937& random) {
  const std::vector<fs::path> files = specimen.files();
  const fs::path name = files[random() % files.size()];
  const fs::path file = name.empty() ? specimen.path : specimen.path / name;
  INFO(turn, " ", file.string());
  const std::string whole = read_file(file, std::size_t{1} << 26);
  write_bytes(file, damaged(whole, specimen.foreign, random));
  WindowDriver window(specimen.path);
  check_notes(window, file, 1);
  check_panels(window, specimen, turn % 10 == 0);
  write_bytes(file, whole);
  if (turn % 4 != 0) return;
  const bool is_seen = window.workbench().refresh();
  window.workbench().wait();
  check_panels(window, specimen, false);
  // As if it had never been damaged.
  for (const char* panel : {"overview", "kernels", "memory"}) {
    INFO(panel);
    window.app().show_only(panel);
    window.step(2);
    const bool is_whole = content_of(window, panel) == specimen.known[0].find(panel)->second;
    if (is_seen) CHECK(is_whole);
  }
}

// A made run with what people and the window leave in it besides.
fs::path write_made_run(const TemporaryFolder& folder) {
  const fs::path run = folder / "made";
  fs::copy(test::image_run().folder(), run, fs::copy_options::recursive);
  write_notes(run,
              {.notes = {{.text = "slow", .view = "kernels", .time = "2026-01-01T00:00:00Z"}}});
  write_bytes(run / "pins-0123456789abcdef.txt", "keep /conv1\nrecompute /relu*\n");
  return run;
}

// As another tool's profile is imported.
fs::path write_imported_run(const TemporaryFolder& folder, const char* trace) {
  const fs::path file = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/traces" / trace;
  const fs::path run = folder / trace;
  REQUIRE(trainscope::test::run({"import", file.string(), "-o", run.string()}).exit_code == 0);
  return run;
}

// A recorded run with two checkpoints, as an older program left it.
fs::path write_recorded_run(const TemporaryFolder& folder) {
  const fs::path run = folder / "recorded";
  fs::copy(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/run-format-1/run", run,
           fs::copy_options::recursive);
  return run;
}

fs::path write_model_file(const TemporaryFolder& folder) {
  fs::copy_file(trainscope::test::test_model("mlp/model.onnx"), folder / "model.onnx");
  return folder / "model.onnx";
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("damaged runs: every panel says what is wrong, or shows what the files say still" *
          doctest::test_suite("long")) {
  // TRAINSCOPE_DAMAGED_RUNS=2000 in nightly.sh.
  const char* wanted = std::getenv("TRAINSCOPE_DAMAGED_RUNS");
  const int runs = wanted == nullptr ? 200 : std::atoi(wanted);
  std::mt19937 random(1);
  const TemporaryFolder folder;
  const std::vector<std::string> text = bytes_of_files(test::text_run().folder());
  const std::vector<std::string> image = bytes_of_files(test::image_run().folder());
  // The first is damaged half of the times.
  Specimen specimens[] = {
      {.path = write_made_run(folder), .foreign = text},
      {.path = write_recorded_run(folder), .foreign = image},
      {.path = write_imported_run(folder, "pytorch-gpu-graph.json.gz"), .foreign = image},
      {.path = write_imported_run(folder, "ort-training-mlp.json.gz"), .foreign = image},
      {.path = write_model_file(folder), .foreign = image}};
  for (Specimen& specimen : specimens) {
    const bool is_first = &specimen == &specimens[0];
    specimen.known = {contents_of(specimen.path),
                      contents_of(is_first ? test::text_run().folder() : specimens[0].path)};
  }
  for (int i = 0; i < runs; ++i) {
    const std::size_t one = i % 2 == 0 ? 0 : 1 + static_cast<std::size_t>(i / 2) % 4;
    damage(specimens[one], i / 2, random);
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
  look_at_all(window);
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
      look_at_all(window);
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
