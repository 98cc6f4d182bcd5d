// The Overview's levers: what `advise` says, and where a press leads.
#include "gui/panels/overview/advice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "engine/core/text.h"
#include "gui/app/workspaces.h"
#include "tests/gui/budget/budget_tools.h"
#include "tests/gui/platform/all_looks.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

const Item& item_of(const WindowDriver& window, const std::string& path) {
  const Item* item = window.items().find(path);
  REQUIRE_MESSAGE(item != nullptr, path);
  return *item;
}

// Presses the question, and waits for the answer.
void ask(WindowDriver& window) {
  REQUIRE(window.click("main/overview/ask/help"));
  // On a busy machine the answer takes longer than one wait.
  for (int i = 0; i < 10; ++i) {
    window.settle();
    if (!window.workbench().under_way) break;
  }
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("advice: levers are those of `advise --json`; a press sets one or copies its words" *
          doctest::test_suite("processes")) {
  const trainscope::test::TemporaryFolder folder;
  trainscope::test::recorded_run(folder, 4, {"--profile", "steps=2:4"});
  const std::string run = (folder / "run").string();
  WindowDriver window(run, {}, {.size = {1280.0F, 2400.0F}});  // so that all levers are seen
  ask(window);
  CHECK(faults_of(window.items()).empty());
  // What the command line has printed in the panel's process: it times calls anew each time.
  const auto& advice = window.workbench().state<AdviceState>();
  const JsonProcess* process = advice.process_of(window.workbench().run());
  REQUIRE(process != nullptr);
  REQUIRE(process->phase() == JsonProcess::Phase::kDone);
  const JsonArray& levers = process->json().at("levers").as_array();
  // Asked again: times differ, bytes do not.
  const trainscope::test::Finished again = trainscope::test::run({"advise", run, "--json"});
  REQUIRE(again.exit_code == 0);
  const Json printed = again.json();
  const auto printed_bytes = [&](const std::string& name) {
    const JsonArray& rows = printed.at("levers").as_array();
    const auto row = std::ranges::find_if(
        rows, [&](const Json& each) { return each.at("name").as_string() == name; });
    return row == rows.end() ? std::nan("") : row->at("arena_bytes").as_number();
  };
  std::size_t held = 0;
  std::string planned;
  std::string copied;
  std::int64_t budget = 0;
  std::size_t i = 0;
  for (const Item* row : window.items().below("main/overview/advice/lever/")) {
    if (row->kind != ItemKind::kRow) continue;
    REQUIRE(i < levers.size());
    const Json& lever = levers[i];
    CHECK(row->label == lever.at("name").as_string());
    const std::string path = row->path.substr(0, row->path.rfind('/'));
    const double bytes = printed_bytes(row->label);
    if (bytes == bytes) {  // which levers there are may depend on times
      CHECK(item_of(window, path + "/arena_bytes").number == bytes);
      ++held;
    }
    for (const std::string key : {"ms", "arena_bytes"}) {
      const Item& number = item_of(window, path + "/" + key);
      CHECK(number.number == lever.at(key).as_number());
      CHECK(number.fact ==
            "trainscope advise " + run + " | /levers/" + std::to_string(i) + "/" + key);
    }
    const Json& flags = lever.at("flags");
    const bool is_budget = flags.as_object().size() == 1 && flags.contains("memory-budget");
    const bool is_overhead = flags.contains("max-overhead");
    if (is_budget) {
      budget = parse_int(flags.at("memory-budget").as_string()).value();
      const trainscope::test::Finished plan =
          trainscope::test::run({"plan", run, "--memory-budget", std::to_string(budget), "--json"});
      REQUIRE(plan.exit_code == 0);
      CHECK(plan.json().at("arena_bytes") == lever.at("arena_bytes"));
    }
    if (is_overhead && budget == 0) budget = lever.at("arena_bytes").as_int();
    if (is_budget || (is_overhead && planned.empty())) planned = row->path;
    if (!is_budget && !is_overhead) copied = row->path;
    ++i;
  }
  CHECK(i >= 3);
  CHECK(held >= 3);
  REQUIRE_FALSE(copied.empty());
  REQUIRE(window.click(copied));
  window.step();
  CHECK(window.app().memory().clipboard.starts_with("trainscope train --config " + run));
  REQUIRE_FALSE(planned.empty());
  REQUIRE(window.click(planned));
  window.settle();
  CHECK(main_panel_of(window.layout()).id == "budget");
  CHECK(item_of(window, "main/budget/level/auto").value == "on");
  CHECK(item_of(window, "main/budget/facts/peak").number <= static_cast<double>(budget));
}

TEST_CASE("advice: the first levers come by themselves, beside the curves, and go with the run" *
          doctest::test_suite("processes")) {
  const trainscope::test::TemporaryFolder folder;
  trainscope::test::recorded_run(folder, 4, {});
  const std::string run = (folder / "run").string();
  // For pictures nothing is looked for.
  WindowDriver picture(run, {}, {.size = {1280.0F, 900.0F}});
  CHECK(picture.workbench().state<AdviceState>().process_of(picture.workbench().run()) == nullptr);
  CHECK(picture.items().below("main/overview/advice/").empty());
  WindowDriver window({}, {}, {.size = {1280.0F, 900.0F}});
  window.workbench().works_ahead = true;
  window.workbench().open(run);
  window.step(2);
  const auto says = [&](std::string_view part) {
    return std::ranges::any_of(window.items().below("main/overview/advice/"), [&](const Item* i) {
      return i->label.find(part) != std::string::npos;
    });
  };
  CHECK(says("What would help"));
  CHECK(says("Compiling the step"));
  CHECK(window.workbench().under_way);
  for (int i = 0; i < 10 && window.workbench().under_way; ++i) window.settle();
  const JsonProcess* process =
      window.workbench().state<AdviceState>().process_of(window.workbench().run());
  REQUIRE(process != nullptr);
  REQUIRE(process->phase() == JsonProcess::Phase::kDone);
  const JsonArray& levers = process->json().at("levers").as_array();
  REQUIRE(levers.size() >= 3);
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(i);
    const std::string line = "main/overview/advice/lever/" + std::to_string(i) + "/";
    CHECK(item_of(window, line).label == levers[i].at("name").as_string());
    CHECK(item_of(window, line + "ms").number == levers[i].at("ms").as_number());
    CHECK(item_of(window, line + "arena_bytes").number == levers[i].at("arena_bytes").as_number());
  }
  CHECK_FALSE(window.has("main/overview/advice/lever/3/"));
  CHECK(std::ranges::any_of(window.items().items(),
                            [](const Item& item) { return item.label == "Loss"; }));
  CHECK(faults_of(window.items()).empty());
  // The same answer, all of it, and another one.
  REQUIRE(window.click("main/overview/ask/help"));
  window.step();
  CHECK(window.workbench().state<AdviceState>().process_of(window.workbench().run()) == process);
  REQUIRE(window.click("main/overview/advice/again"));
  window.step();
  CHECK(window.workbench().under_way);
  window.workbench().close(0);
  window.step(2);
  CHECK_FALSE(window.workbench().under_way);
  CHECK(window.workbench().state<AdviceState>().runs.empty());
}

TEST_CASE("advice: nothing is looked for of a run whose model is gone") {
  WindowDriver window({});
  window.workbench().works_ahead = true;
  window.workbench().open(test::text_run().folder());
  window.settle();
  CHECK(window.items().below("main/overview/advice/").empty());
  CHECK(window.workbench().state<AdviceState>().process_of(window.workbench().run()) == nullptr);
}

TEST_CASE("advice: a run without its model says what is wrong, and goes away by a press") {
  WindowDriver window(test::text_run().folder());
  ask(window);
  CHECK(window.items().below("main/overview/advice/lever/").empty());
  CHECK_FALSE(window.items().below("main/overview/advice/").empty());
  CHECK(faults_of(window.items()).empty());
  REQUIRE(window.click("main/overview/ask/help"));
  window.step();
  CHECK(window.items().below("main/overview/advice/").empty());
}

TEST_CASE("advice: in every theme, size and scale it is whole and can be read" *
          doctest::test_suite("processes")) {
  const trainscope::test::TemporaryFolder folder;
  trainscope::test::recorded_run(folder, 4, {"--profile", "steps=2:4"});
  WindowDriver window(folder / "run");
  ask(window);
  window.app().show_only("overview");
  for (const ThemeName theme : kThemeNames) {
    for (const test::Screen& screen : test::kScreens) {
      INFO(theme_of(theme).name, " ", screen.logical.width, " ", screen.scale);
      window.workbench().settings.theme = theme;
      window.resize(screen.logical);
      window.rescale(screen.scale);
      window.settle();
      CHECK(test::all_faults(window) == "");
      const bool has_room = screen.logical.width > 1000.0F;
      CHECK(window.items().below("main/overview/advice/lever/").empty() == !has_room);
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
