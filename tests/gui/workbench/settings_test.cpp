// Settings and notes there and back, and tables as text.
#include "gui/workbench/settings.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "gui/workbench/notes.h"
#include "gui/workbench/panel.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope::gui {
namespace {

TEST_CASE("settings: there and back as JSON") {
  Settings settings;
  settings.theme = ThemeName::kLight;
  settings.scale = 1.5F;
  settings.text_size = 17.0F;
  settings.reduced_motion = true;
  settings.remember("runs/a");
  settings.layout.workspace = "kernels";
  settings.layout.strip_panels["kernels"] = "timeline";
  settings.saved_layouts["of kernels"] = settings.layout;
  CHECK(settings_from(Json::parse(to_json(settings).dump())) == settings);
}

TEST_CASE("settings: what is out of range is brought into it, what is missing is as usual") {
  const Settings settings =
      settings_from(Json::parse(R"({"scale": 99, "text_size": 1, "theme": "none"})"));
  CHECK(settings.scale == kGreatestScale);
  CHECK(settings.text_size == 11.0F);
  CHECK(settings.theme == ThemeName::kDark);
  CHECK(settings.layout == Layout{});
  CHECK_THROWS_AS(settings_from(Json::parse(R"({"scale": "large"})")), Error);
}

TEST_CASE("settings: what a command line asks for is of its window, unless it is changed there") {
  Settings kept;
  kept.theme = ThemeName::kLight;
  kept.scale = 1.25F;
  const AskedLook asked{.theme = ThemeName::kDark, .scale = 2.0F};
  Settings shown = with_look(kept, asked);
  CHECK(shown.theme == ThemeName::kDark);
  CHECK(shown.scale == 2.0F);
  CHECK(without_look(shown, kept, asked) == kept);
  shown.remember("runs/a");
  shown.scale = 1.5F;
  const Settings after = without_look(shown, kept, asked);
  CHECK(after.theme == ThemeName::kLight);
  CHECK(after.scale == 1.5F);
  CHECK(after.recent == shown.recent);
  // Nothing was asked for: all is as it is in the window.
  CHECK(with_look(kept, {}) == kept);
  CHECK(without_look(shown, kept, {}) == shown);
}

TEST_CASE("settings: recent paths are each there once, the newest first, ten at most") {
  Settings settings;
  for (int i = 0; i < 14; ++i) settings.remember("/runs/" + std::to_string(i));
  settings.remember("/runs/9");
  REQUIRE(settings.recent.size() == 10);
  CHECK(settings.recent[0] == "/runs/9");
  CHECK(settings.recent[1] == "/runs/13");
}

TEST_CASE("settings: layouts are kept by name in the file") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "trainscope" / "window.json";
  CHECK(kept_settings(file).settings == Settings{});
  CHECK(kept_settings(file).fault == "");
  Settings settings;
  settings.saved_layouts["wide"] = {.workspace = "memory", .inspector_width = 500.0F};
  settings.saved_layouts["größer"] = {.strip_height = 300.0F, .rail_pinned = true};
  keep_settings(settings, file);
  const KeptSettings kept = kept_settings(file);
  CHECK(kept.fault == "");
  CHECK(kept.settings == settings);
}

TEST_CASE("settings: a damaged file is put aside, and the usual settings are said to be used") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "window.json";
  Settings settings;
  settings.saved_layouts["wide"] = {.workspace = "memory"};
  const std::string whole = to_json(settings).dump(2);
  std::vector<std::string> damaged = {
      "",
      R"({"saved_layouts": []})",
      R"({"saved_layouts": {"wide": 3}})",
      R"({"saved_layouts": {"wide": {"inspector_width": "wide"}}})",
      R"({"saved_layouts": {"wide": {"main_panels": {"graph": 1}}}})",
      R"({"saved_layouts": {"": {}}})",
      R"({"saved_layouts": {" wide": {}}})",
      R"({"saved_layouts": {"a\u0007": {}}})",
  };
  for (std::size_t bytes = 1; bytes < whole.size(); bytes += 17) {
    damaged.push_back(whole.substr(0, bytes));
  }
  for (const std::string& text : damaged) {
    INFO(text);
    write_file_atomic(file, text);
    const KeptSettings kept = kept_settings(file);
    CHECK(kept.settings == Settings{});
    CHECK(kept.fault.ends_with("window.json.damaged' now"));
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK(read_file(folder / "window.json.damaged", 1 << 20) == text);
  }
  // What is out of range in a layout is brought into it, as of the layout of now.
  write_file_atomic(file, std::string_view(R"({"saved_layouts": {"a": {"strip_height": 1e9}}})"));
  const KeptSettings kept = kept_settings(file);
  CHECK(kept.fault == "");
  CHECK(kept.settings.saved_layouts.at("a").strip_height == 900.0F);
}

TEST_CASE("notes: there and back; another format is refused") {
  const Notes notes{{{.text = "why?", .view = "kernels,node:a", .time = "2026-11-25T00:00:00Z"}}};
  const Notes read = notes_from(Json::parse(to_json(notes).dump()));
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0].text == "why?");
  CHECK(read.notes[0].view == "kernels,node:a");
  CHECK_THROWS_AS(notes_from(Json::parse(R"({"format": 2, "notes": []})")), Error);
  CHECK_THROWS_AS(notes_from(Json::parse(R"({"format": 1, "notes": 3})")), Error);
}

TEST_CASE("copied tables: a line each, whatever the cells hold") {
  const CopiedTable table{.head = {"name", "ms"}, .rows = {{"a\tb\nc", "1"}, {"d|e", "2"}}};
  CHECK(tsv_of(table) == "name\tms\na b c\t1\nd|e\t2\n");
  CHECK(markdown_of(table) == "| name | ms |\n|---|---:|\n| a b c | 1 |\n| d\\|e | 2 |\n");
}

}  // namespace
}  // namespace trainscope::gui
