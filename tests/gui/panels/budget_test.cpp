// The Budget panel without a display: sliders, levels, pins and buttons by their paths, numbers
// held against the command line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "gui/budget/budget_view.h"
#include "tests/gui/panels/budget_window.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {
namespace {

namespace fs = std::filesystem;
using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;

// What the twin prints.
Json twin_json(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) words.emplace_back(word);
  REQUIRE(words.front() == "trainscope");
  words.erase(words.begin());
  words.emplace_back("--json");
  const trainscope::test::Finished finished = trainscope::test::run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

// Of a JSON pointer, "/recompute/overhead".
const Json& at_pointer(const Json& json, std::string_view pointer) {
  const Json* at = &json;
  for (const std::string_view key : split(pointer.substr(1), '/')) at = &at->at(key);
  return *at;
}

int check_numbers(BudgetWindow& panel) {
  const Json printed = twin_json(panel.twin());
  int count = 0;
  for (const Item& item : panel.window.items().items()) {
    if (item.kind != ItemKind::kNumber || item.fact.empty()) continue;
    CAPTURE(item.path);
    const std::size_t bar = item.fact.find(" | ");  // a command line of its own
    const Json of_item = bar == std::string::npos ? printed : twin_json(item.fact.substr(0, bar));
    const std::string pointer = bar == std::string::npos ? item.fact : item.fact.substr(bar + 3);
    CHECK(item.number == at_pointer(of_item, pointer).as_number());
    ++count;
  }
  return count;
}

}  // namespace

TEST_SUITE_BEGIN("gui");

TEST_CASE("budget panel: what it shows is what `plan RUN` prints, at every level and budget" *
          doctest::test_suite("processes")) {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  CHECK(check_numbers(panel) == 4);
  check_looks(panel);
  for (const char* level : {"1", "2", "auto", "none"}) {
    CAPTURE(level);
    panel.click(std::string("level/") + level);
    CHECK(panel.item(std::string("level/") + level).value == "on");
    CHECK(check_numbers(panel) >= (std::string_view(level) == "none" ? 2 : 6));
    check_looks(panel);
  }
}

TEST_CASE("budget panel: a run whose options have no threads is planned for those that it used") {
  const std::filesystem::path& run = plain_run().folder();
  BudgetWindow panel(run);
  const double recorded =
      static_cast<double>(RunReader::open(run).plan().value().view().arena().bytes);
  CHECK(panel.number("facts/peak") == recorded);
  CHECK(check_numbers(panel) == 4);
}

TEST_CASE("budget panel: the slider by keys, the curve from plan to plan" *
          doctest::test_suite("long")) {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  const double plain = panel.number("facts/peak");
  panel.window.click("main/budget/slider");
  panel.key("End");
  CHECK(panel.item("level/auto").value == "on");
  CHECK(panel.number("facts/peak") == plain);
  double before = plain;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 25; ++k) panel.window.key("Left");
    panel.settle();
    CHECK(panel.number("facts/peak") <=
          before);  // the processor's kernels say how many plans there are
    CHECK(panel.number("facts/overhead") >= panel.number("facts/certificate"));
    before = panel.number("facts/peak");
  }
  CHECK(before < plain);
  check_numbers(panel);
  panel.key("Home");
  const double least = panel.number("facts/peak");
  CHECK(least < before);
  panel.window.click("main/budget/curve");
  panel.settle();
  const double clicked = panel.number("facts/peak");
  CHECK(clicked > least);
  panel.key("Right");
  CHECK(panel.number("facts/peak") >= clicked);
  check_looks(panel);
}

TEST_CASE("budget panel: a click pins a value: kept, made again, free") {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  panel.click("level/2");
  const std::vector<const Item*> values = panel.window.items().below("main/budget/value/");
  REQUIRE(values.size() > 3);
  const auto largest = std::ranges::max_element(
      values, {}, [](const Item* item) { return item->rect.width * item->rect.height; });
  const std::string name = "value/" + (*largest)->label;
  CHECK(panel.item(name).value == "free");
  panel.click(name);
  CHECK(panel.item(name).value == "keep");
  panel.click("unpin");
  CHECK(panel.item(name).value == "free");
  CHECK(panel.find("unpin") == nullptr);
}

TEST_CASE("budget panel: a command pins the selected value, and says what cannot be pinned") {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  panel.click("level/2");
  Workbench& workbench = panel.window.workbench();
  const auto command = [&](const std::string& line) {
    workbench.request(line);
    panel.settle();
  };
  const std::vector<const Item*> values = panel.window.items().below("main/budget/value/");
  REQUIRE_FALSE(values.empty());
  const auto largest = std::ranges::max_element(
      values, {}, [](const Item* item) { return item->rect.width * item->rect.height; });
  const std::string value = (*largest)->label;
  command("select value:" + value);
  for (const char* pin : {"keep", "recompute", "free"}) {
    command("budget.pin");
    CHECK(panel.item("value/" + value).value == pin);
  }
  const auto& buffers = workbench.links()->plan().buffers;
  const auto parameter = std::ranges::find(buffers, BufferClass::kParameter, &PlanBuffer::holds);
  REQUIRE(parameter != buffers.end());
  command(fmt::format("select buffer:{}", parameter - buffers.begin()));
  command("budget.pin");
  CHECK(workbench.notice.is_error);
  CHECK(workbench.notice.text.find("forward phase") != std::string::npos);
  CHECK(panel.find("unpin") == nullptr);
}

TEST_CASE("budget panel: arrows choose a value, Enter pins it") {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  panel.click("level/2");
  const auto chosen = [&] { return panel.item("plane").value; };
  CHECK(chosen().empty());
  panel.window.app().memory().focus = "main/budget/plane";
  panel.window.key("Right");
  const std::string first = chosen();
  REQUIRE_FALSE(first.empty());
  std::set<std::string> seen = {first};
  for (const char* way : {"Right", "Right", "Up", "Right", "Down", "Left"}) {
    panel.window.key(way);
    seen.insert(chosen());
  }
  CHECK(seen.size() > 2);
  const std::string pinned = chosen();
  panel.key("Enter");
  CHECK(panel.item("value/" + pinned).value == "keep");
  panel.key("Enter");
  const Item* value = panel.find("value/" + pinned);
  if (value != nullptr) CHECK(value->value == "recompute");
  check_looks(panel);
}

TEST_CASE("budget panel: what no plan fits is offered the least that one does" *
          doctest::test_suite("long")) {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  const double plain = panel.number("facts/peak");
  CHECK(panel.find("nearest") == nullptr);
  panel.window.click("main/budget/budget");
  panel.window.type("1%");
  panel.key("Enter");
  REQUIRE(panel.find("nearest") != nullptr);
  CHECK_FALSE(panel.item("run").enabled);
  check_all_looks(panel);
  panel.click("nearest");
  CHECK(panel.find("nearest") == nullptr);
  CHECK(panel.number("facts/peak") < plain);
  CHECK(panel.item("run").enabled);
}

TEST_CASE("budget panel: a plan along the front that is asked for before there is one" *
          doctest::test_suite("long")) {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  for (const char* command : {"budget.less", "budget.least"}) {
    CAPTURE(command);
    Headless window({}, {});
    window.workbench().open(folder / "run");
    window.app().show_only("budget");
    window.workbench().request(command);
    window.step();
    window.settle();
    BudgetWindow known(folder / "run");
    known.window.workbench().request(command);
    known.settle();
    const Item* peak = window.items().find("main/budget/facts/peak");
    REQUIRE(peak != nullptr);
    CHECK(peak->number == known.number("facts/peak"));
    CHECK(peak->number < window.items().find("main/budget/facts/plain")->number);
  }
}

TEST_CASE("budget panel: the first plan is held against the step without recomputation") {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  Headless window({}, {});
  window.workbench().open(folder / "run");
  window.app().show_only("budget");
  window.workbench().request("budget.2");
  window.step();
  window.settle();
  const std::string plain = window.items().find("main/budget/facts/plain")->value;
  CHECK(std::ranges::any_of(window.items().items(), [&](const Item& item) {
    return item.path.ends_with("/before") && item.label == plain;
  }));
}

TEST_CASE("budget panel: the command line of the plan") {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  panel.click("level/1");
  panel.click("config");
  panel.window.click("main/budget/copy_command");
  CHECK(panel.window.app().memory().clipboard ==
        fmt::format("trainscope train --resume {} --session-steps 20 --steps 21 --recompute 1",
                    (folder / "run").string()));
}

TEST_CASE("budget panel: make it fit in 90 %, and train on: click, word, Enter, click" *
          doctest::test_suite("processes")) {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps, {"--batch", "8"});
  BudgetWindow panel(folder / "run");
  const double plain = panel.number("facts/peak");
  panel.window.click("main/budget/budget");
  panel.window.type("9x%");
  panel.key("Enter");
  CHECK(panel.number("facts/peak") == plain);  // not understood: nothing is asked
  panel.window.key("Esc");
  panel.click("level/none");
  panel.window.click("main/budget/budget");
  panel.window.type("90%");
  panel.key("Enter");
  CHECK(panel.number("facts/peak") <= 0.9 * plain);
  CHECK(check_numbers(panel) >= 6);
  panel.click("run");
  CHECK(panel.number("worker/arena/measured") == panel.number("facts/peak"));
}

TEST_CASE("budget panel: every command, by its name" * doctest::test_suite("processes")) {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps);
  BudgetWindow panel(folder / "run");
  const auto command = [&](const char* id) {
    panel.window.workbench().request(id);
    panel.settle();
  };
  const double plain = panel.number("facts/peak");
  for (const char* level : {"1", "2", "auto", "none"}) {
    command((std::string("budget.") + level).c_str());
    CHECK(panel.item(std::string("level/") + level).value == "on");
  }
  command("budget.less");
  const double less = panel.number("facts/peak");
  CHECK(less < plain);
  command("budget.less");
  CHECK(panel.number("facts/peak") < less);
  command("budget.more");
  CHECK(panel.number("facts/peak") == less);
  command("budget.run");
  CHECK(panel.number("worker/arena/measured") == less);
  command("budget.unpin");
  command("budget.stop");
  CHECK(panel.number("facts/peak") == less);
  for (const AppCommand& each : panel_named("budget")->commands) {
    CHECK_FALSE(each.help.empty());
    Workbench nothing_open;
    each.run(nothing_open);
    CHECK_FALSE(each.enabled(nothing_open));
  }
}

TEST_CASE("budget panel: what has no plan says so") {
  const TemporaryFolder folder;
  const auto has_title = [](BudgetWindow& panel, std::string_view text) {
    return std::ranges::any_of(panel.window.items().items(),
                               [&](const Item& item) { return item.label == text; });
  };
  BudgetWindow model(trainscope::test::test_model("gpt2/model.onnx"));
  CHECK(has_title(model, "Budgets are planned for runs"));
  check_looks(model);
  recorded_run(folder, 1);
  fs::remove_all(folder / "run/stages");
  BudgetWindow broken(folder / "run");
  CHECK(has_title(broken, "The step cannot be planned"));
  check_looks(broken);
}

TEST_CASE("budget panel: in every theme, size and scale it is whole and can be read" *
          doctest::test_suite("long")) {
  const TemporaryFolder folder;
  recorded_run(folder, 1);
  BudgetWindow panel(folder / "run");
  panel.click("level/auto");
  check_all_looks(panel);
  CHECK(panel.item("level/auto").value == "on");
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
