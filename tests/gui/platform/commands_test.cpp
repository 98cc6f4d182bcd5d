// Commands, copies, bookmarks and layouts of the window.
#include "gui/app/commands.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/core/file.h"
#include "gui/app/bookmarks.h"
#include "gui/app/command_docs.h"
#include "gui/app/workspaces.h"
#include "gui/panels/panels.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

TEST_SUITE_BEGIN("gui");

TEST_CASE("window: what a panel shows is copied as TSV, Markdown and a command line") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  const auto copied = [&](int choice) {
    window.click("main/head/copy");
    window.step();
    window.click("main/head/copy/menu/" + std::to_string(choice));
    window.step();
    return window.app().memory().clipboard;
  };
  CHECK(copied(0).starts_with("node\tms\tshare"));
  CHECK(copied(1).starts_with("| node | ms |"));
  CHECK(copied(2).starts_with("trainscope query "));
  CHECK(copied(3).starts_with("trainscope gui "));
}

TEST_CASE("window: a bookmark is kept in the run, and leads back") {
  WindowDriver window(test::image_run().folder());
  window.key("F4");
  window.click("main/kernels/table/row/1/");
  const std::string selected = window.workbench().selected_name();
  window.type("m");
  CHECK(window.workbench().notes.notes.size() == 1);
  window.key("F5");
  window.key("Esc");
  WindowDriver other(test::image_run().folder());
  REQUIRE(other.workbench().notes.notes.size() == 1);
  other.type("n");
  other.step();
  REQUIRE(other.click("notes/0/show"));
  other.step();
  CHECK(main_panel_of(other.layout()).id == "kernels");
  CHECK(other.workbench().selected_name() == selected);
  other.type("n");
  other.step();
  REQUIRE(other.click("notes/text"));
  other.type("why is it slow");
  other.key("Enter");
  other.step();
  REQUIRE(other.workbench().notes.notes.size() == 2);
  CHECK(other.workbench().notes.notes[1].text == "why is it slow");
  REQUIRE(other.click("notes/0/remove"));
  other.step();
  REQUIRE(other.click("notes/0/remove"));
  other.step();
  CHECK(read_notes(test::image_run().folder()).notes.empty());
}

TEST_CASE("window: views there and back as --at has them") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.click("main/kernels/table/row/2/");
  const std::string view = view_of(window.workbench());
  CHECK(view.starts_with("kernels,node:"));
  WindowDriver other(test::text_run().folder());
  REQUIRE(show_view(other.workbench(), view));
  other.step();
  CHECK(view_of(other.workbench()) == view);
  CHECK_FALSE(show_view(other.workbench(), "nowhere"));
  CHECK_FALSE(show_view(other.workbench(), "kernels,node:nobody"));
  CHECK(other.workbench().notice.is_error);
}

TEST_CASE("commands: ids and keys are there once, all have a title and a sentence") {
  std::vector<std::string_view> ids;
  std::vector<std::string_view> keys;
  for (const AppCommand& command : all_commands()) {
    ids.push_back(command.id);
    CHECK_FALSE(command.title.empty());
    CHECK_FALSE(command.help.empty());
    if (command.key.empty()) continue;
    CHECK(chord_named(command.key).has_value());
    keys.push_back(command.key);
  }
  std::ranges::sort(ids);
  CHECK(std::ranges::adjacent_find(ids) == ids.end());
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}

namespace {

// What they plan or train takes a while: tests/gui/panels/budget_worker_test.cpp runs them by keys.
bool is_of_budget(const AppCommand& command) { return command.id.starts_with("budget."); }
// See opening_test.cpp.
bool is_of_models(const AppCommand& command) {
  return command.id == "file.stop" || command.id == "file.sizes";
}

// See sessions_test.cpp: these runs have one session.
bool is_of_sessions(const AppCommand& command) { return command.id.starts_with("file.session_"); }

// The panel whose command it is; null: it is one of the whole window.
const Panel* panel_of(const AppCommand& command) {
  for (const Panel& panel : all_panels()) {
    if (std::ranges::find(panel.commands, command.id, &AppCommand::id) != panel.commands.end()) {
      return &panel;
    }
  }
  return nullptr;
}

// In the middle of things: a filter, a part of the plane, an earlier stage, a step as the range.
void prepare(Workbench& bench, std::string_view panel) {
  if (panel == "kernels") REQUIRE(show_view(bench, "kernels,filter=phase==backward"));
  if (panel == "memory") REQUIRE(show_view(bench, "memory,range=0:4:0:512"));
  if (panel == "graph" || panel == "stages") {
    REQUIRE(show_view(bench, "graph,color=time,stage=" + bench.run()->stages()[3].label));
  }
  if (panel != "timeline") return;
  for (const char* line : {"timeline.next_step", "timeline.next_step", "timeline.nearer"}) {
    REQUIRE(run_command(bench, line));
  }
}

// Two runs are open, or a third to hold this one against, a layout is saved, the selection can go
// back and forward, and the panel of the command is shown: every command can be run but those of
// models, and has something to do.
void make_all_possible(WindowDriver& window, const AppCommand& command) {
  Workbench& bench = window.workbench();
  if (command.id == "runs.compare") bench.open(test::plain_run().folder());
  bench.open(test::text_run().folder());
  REQUIRE(run_command(bench, "save_layout mine"));
  const Panel* panel = panel_of(command);
  if (panel != nullptr) prepare(bench, panel->id);
  for (const char* name : {"call:1", "call:2", "call:3"}) REQUIRE(bench.select_named(name));
  REQUIRE(bench.history().go_back());
  bench.settings.scale = 1.25F;
  const bool is_shown = panel != nullptr && !is_of_budget(command) && panel->id != "overview";
  const std::string_view elsewhere = command.id == "go.memory" ? "kernels" : "memory";
  REQUIRE(show_panel(bench.settings.layout, is_shown ? panel->id : elsewhere));
  window.settle();
  bench.notice = {};
}

// All that a command can change, and what it says.
std::string all_of(WindowDriver& window) {
  return window.state_text() + "\n" + window.workbench().notice.text + "\n" + window.drawn_text();
}

void run_by_palette(WindowDriver& window, const AppCommand& command) {
  INFO(command.id);
  CHECK(is_enabled(command, window.workbench()));
  window.key("Ctrl+P");
  window.type(command.title);
  window.step();
  CHECK(window.label("palette/0/") == command.title);
  window.key("Enter");
  window.step(2);
}

}  // namespace

TEST_CASE("commands: each is found in the palette by its title, and does something by keys alone" *
          doctest::test_suite("long")) {
  for (const AppCommand& command : all_commands()) {
    if (command.id == "file.quit" || is_of_models(command) || is_of_sessions(command)) continue;
    INFO(command.id);
    WindowDriver window(test::image_run().folder());
    make_all_possible(window, command);
    window.key("Ctrl+P");
    window.key("Esc");  // the palette came and went: what is different now is the command's work
    window.step();
    const std::string before = all_of(window);
    run_by_palette(window, command);
    // This run has no checkpoint to train on from, which is said.
    const bool needs_checkpoint = command.id == "budget.run";
    CHECK(window.workbench().notice.is_error == needs_checkpoint);
    const bool does_something = all_of(window) != before;
    CHECK((does_something || is_of_budget(command)));
  }
  // A bookmark was made by one of them.
  std::filesystem::remove(test::text_run().folder() / kNotesFile);
}

TEST_CASE("commands: what has a key runs by it" * doctest::test_suite("long")) {
  for (const AppCommand& command : all_commands()) {
    if (command.key.empty() || command.id == "file.quit") continue;
    INFO(command.id);
    WindowDriver window(test::image_run().folder());
    make_all_possible(window, command);
    window.step();
    const std::string before = all_of(window);
    window.key(command.key);
    window.step(2);
    const bool does_something = all_of(window) != before;
    CHECK(does_something);
    CHECK_FALSE(window.workbench().notice.is_error);
  }
  std::filesystem::remove(test::text_run().folder() / kNotesFile);
}

TEST_CASE("commands: keys of a panel are there once in it, and do what their commands do" *
          doctest::test_suite("long")) {
  std::size_t with_key = 0;
  std::size_t changed = 0;
  for (const Panel& panel : all_panels()) {
    std::vector<std::string_view> keys;
    for (const AppCommand& command : panel.commands) {
      if (command.panel_key.empty()) continue;
      INFO(command.id);
      const bool takes_time = command.id == "stages.play";
      CHECK(command.key.empty());
      CHECK(chord_named(command.panel_key).has_value());
      CHECK(std::ranges::find(keys, command.panel_key) == keys.end());
      keys.push_back(command.panel_key);
      // In the middle of things: another stage, a call, a step as the range, the cursor at its
      // begin.
      const auto prepared = [&](WindowDriver& window) {
        const std::string stage = window.workbench().run()->stages()[3].label;
        REQUIRE(show_view(window.workbench(), "graph,color=time,stage=" + stage));
        REQUIRE(window.workbench().select_named("call:3"));
        REQUIRE(run_command(window.workbench(), "timeline.next_step"));
        REQUIRE(show_panel(window.workbench().settings.layout, panel.id));
        window.settle();
        return window.svg();
      };
      WindowDriver by_key(test::text_run().folder());
      const std::string before = prepared(by_key);
      const char letter = command.panel_key.front();  // of the key: without Shift
      const bool is_letter = command.panel_key.size() == 1 && letter >= 'A' && letter <= 'Z';
      by_key.key(is_letter ? std::string(1, static_cast<char>(letter - 'A' + 'a'))
                           : std::string(command.panel_key));
      by_key.settle();
      WindowDriver by_id(test::text_run().folder());
      const bool is_same = prepared(by_id) == before;
      CHECK(is_same);
      REQUIRE(run_command(by_id.workbench(), command.id));
      by_id.settle();
      const std::string after = by_id.svg();
      const bool does_the_same = takes_time || by_key.svg() == after;
      CHECK(does_the_same);
      ++with_key;
      changed += after == before ? 0 : 1;
    }
  }
  CHECK(with_key > 25);
  CHECK(changed + 4 >= with_key);  // what is whole already is fitted to no other picture
}

TEST_CASE("commands: the table of the panel in front is copied, of the region that has the keys") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.key("Ctrl+C");
  CHECK(window.app().memory().clipboard.starts_with("node\tms\tshare"));
  window.key("F6");  // the strip: its timeline
  REQUIRE(window.app().memory().region == "strip");
  window.key("Ctrl+C");
  CHECK(window.app().memory().clipboard.starts_with("name\tis_call\tns"));
  REQUIRE(run_command(window.workbench(), "file.copy_command"));
  window.step();
  CHECK(window.app().memory().clipboard.find("--range ") != std::string::npos);
}

TEST_CASE("commands: by word and argument, with a notice where they cannot be run") {
  WindowDriver window(test::text_run().folder());
  Workbench& bench = window.workbench();
  CHECK(run_command(bench, "theme light"));
  CHECK(bench.settings.theme == ThemeName::kLight);
  CHECK(run_command(bench, "scale 1.25"));
  CHECK(bench.settings.scale == 1.25F);
  CHECK(run_command(bench, "panel kernels"));
  for (const char* wrong : {"theme purple", "scale 9", "scale x", "panel nothing", "go.nowhere",
                            "sizes --batch 0", "open model.onnx --batch x", "save_layout \n", ""}) {
    INFO(wrong);
    CHECK_FALSE(fault_of_command(wrong).empty());
    bench.notice = {};
    CHECK_FALSE(run_command(bench, wrong));
    CHECK(bench.notice.is_error);
    CHECK(bench.notice.text == fault_of_command(wrong));
  }
  // What is wrong with these depends on what is open.
  for (const char* not_now :
       {"select node:nobody", "go.forward", "sizes --batch 8", "layout none"}) {
    INFO(not_now);
    CHECK(fault_of_command(not_now).empty());
    bench.notice = {};
    CHECK_FALSE(run_command(bench, not_now));
    CHECK(bench.notice.is_error);
  }
}

TEST_CASE("commands: docs/gui.md has their table") {
  const std::filesystem::path file = TRAINSCOPE_SOURCE_DIR "/docs/gui.md";
  const std::string page = read_file(file, std::size_t{1} << 20);
  const std::string begin = "<!-- commands -->\n";
  const std::size_t from = page.find(begin) + begin.size();
  const std::size_t to = page.find("<!-- end of commands -->");
  REQUIRE(to != std::string::npos);
  const std::string want = page.substr(0, from) + commands_markdown() + page.substr(to);
  const char* update = std::getenv("TRAINSCOPE_UPDATE_DOCS");
  if (update != nullptr && std::string(update) == "1") write_file_atomic(file, want);
  const bool is_current = read_file(file, std::size_t{1} << 20) == want;
  CHECK_MESSAGE(is_current, "run this test with TRAINSCOPE_UPDATE_DOCS=1");
}

TEST_CASE("window: quits by its key") {
  WindowDriver window(test::text_run().folder());
  window.key("Ctrl+Q");
  CHECK(window.workbench().quit);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
