// Settings and notes there and back, and tables as text.
#include "gui/workbench/settings.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "gui/workbench/notes.h"
#include "gui/workbench/panel.h"

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
  settings.saved_layouts["saved"] = settings.layout;
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

TEST_CASE("settings: recent paths are each there once, the newest first, ten at most") {
  Settings settings;
  for (int i = 0; i < 14; ++i) settings.remember("/runs/" + std::to_string(i));
  settings.remember("/runs/9");
  REQUIRE(settings.recent.size() == 10);
  CHECK(settings.recent[0] == "/runs/9");
  CHECK(settings.recent[1] == "/runs/13");
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
