// Workers of the Budget panel: runs that were trained on by its button.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/core/text.h"
#include "gui/app/commands.h"
#include "gui/budget/train_on.h"
#include "gui/panels/budget_parts.h"
#include "tests/gui/panels/budget_window.h"

namespace trainscope::gui::test {
namespace {

namespace fs = std::filesystem;
using trainscope::test::Place;
using trainscope::test::places_of;
using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;
using trainscope::test::wait_until;

constexpr int kMoreSteps = 20;  // that the button asks for

// The processes that this one has started.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc())
      continue;
    const std::string stat = trainscope::test::read_text(entry.path() / "stat");
    const std::size_t end = stat.rfind(") ");
    if (end == std::string::npos) continue;
    const std::vector<std::string_view> fields = split(std::string_view(stat).substr(end + 2), ' ');
    if (fields.size() > 1 && fields[1] == std::to_string(::getpid())) found.push_back(process);
  }
  return found;
}

// The plan that the panel draws.
const PlanAnswer& shown_plan(BudgetWindow& panel) {
  const PlanAnswer* shown = panel.window.workbench().state<BudgetPanel>().model.shown();
  REQUIRE(shown != nullptr);
  REQUIRE(shown->outcome.record != nullptr);
  return *shown;
}

// Of every rectangle of a plan's plane, in the order that they are drawn in.
using Rectangle = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint32_t,
                             std::uint32_t, BufferClass, bool>;
std::vector<Rectangle> rectangles_of(const MemoryMap& map) {
  std::vector<Rectangle> all;
  for (const MemoryRectangle& each : map.rectangles) {
    all.emplace_back(each.buffer, each.offset, each.bytes, each.begin, each.end, each.holds,
                     each.recomputed);
  }
  return all;
}

// Whether an item has the text on it.
bool says(BudgetWindow& panel, std::string_view text) {
  return std::ranges::any_of(panel.window.items().items(), [&](const Item& item) {
    return item.label.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_SUITE_BEGIN("processes");

TEST_CASE(
    "budget panel: twenty steps by its button, under every plan, are the steps of a run "
    "without") {
  const TemporaryFolder whole_folder;
  const RunReader whole = recorded_run(whole_folder, kFirstSteps + kMoreSteps);
  const std::vector<StepRecord> expected = whole.metrics().steps;
  for (const char* level : {"none", "1", "2", "auto", "budget"}) {
    CAPTURE(level);
    const TemporaryFolder folder;
    recorded_run(folder, kFirstSteps);
    BudgetWindow panel(folder / "run");
    const bool is_budget = std::string_view(level) == "budget";
    panel.click(std::string("level/") + (is_budget ? "auto" : level));
    if (is_budget) {
      panel.window.click("main/budget/slider");
      for (int i = 0; i < 15; ++i) panel.window.key("Left");
      panel.settle();
    }
    const double peak = panel.number("facts/peak");
    const std::vector<Rectangle> drawn = rectangles_of(shown_plan(panel).map);
    const std::vector<Place> places = places_of(shown_plan(panel).plan());
    REQUIRE(drawn.size() > 20);
    panel.click("run");
    CHECK(panel.number("worker/arena/predicted") == peak);
    CHECK(panel.number("worker/arena/measured") == peak);
    CHECK(panel.number("worker/step/measured") > 0.0);
    CHECK(panel.number("worker/loss") == expected.back().loss);
    check_looks(panel);
    const RunReader after = RunReader::open(folder / "run");
    REQUIRE(after.manifest().sessions.size() == 2);
    const std::vector<StepRecord> steps = after.metrics().steps;
    REQUIRE(steps.size() == expected.size());
    for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].loss == expected[i].loss);
    // The program that the worker compiled has each buffer where it was drawn before the press, to
    // the byte and to the call; those outside of the arena too.
    const StoredPlan compiled = after.plan().value();
    CHECK(static_cast<double>(compiled.view().arena().bytes) == peak);
    CHECK(rectangles_of(memory_map(compiled.view())) == drawn);
    CHECK(places_of(compiled.view()) == places);
  }
}

TEST_CASE("budget panel: a worker that is killed leaves a line") {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps);
  BudgetWindow panel(folder / "run");
  panel.window.click("main/budget/run");
  std::vector<pid_t> workers;
  REQUIRE(wait_until([&] {
    panel.window.step();
    workers = children();
    return !workers.empty();
  }));
  for (const pid_t worker : workers) ::kill(worker, SIGKILL);
  panel.settle();
  CHECK(says(panel, "was ended by signal 9"));
  check_all_looks(panel);
  CHECK(panel.item("run").enabled);
  panel.click("run");
  CHECK(panel.number("worker/arena/measured") == panel.number("facts/peak"));
  check_all_looks(panel);
}

TEST_CASE(
    "budget panel: a worker that is stopped in the middle leaves a checkpoint to train on from") {
  for (const bool by_keys : {false, true}) {
    CAPTURE(by_keys);
    const TemporaryFolder folder;
    recorded_run(folder, kFirstSteps, {"--accumulate", "200"});  // steps that take their time
    BudgetWindow panel(folder / "run");
    if (by_keys) panel.show_window();
    const auto press = [&](const char* button, const char* command) {
      if (by_keys) return panel.run_by_keys(command);
      REQUIRE(panel.window.click(std::string("main/budget/") + button));
    };
    press("run", "Run 20 steps with this plan");
    REQUIRE(wait_until([&] {
      panel.window.step();
      return panel.find("worker/loss") != nullptr;
    }));
    press("stop", "Stop the worker");
    panel.settle();
    // It ended after a step before its last, and the checkpoint is of that one.
    const RunReader stopped = RunReader::open(folder / "run");
    REQUIRE(stopped.manifest().sessions.size() == 2);
    CHECK(stopped.manifest().sessions.back().status == RunStatus::kInterrupted);
    const std::int64_t last = stopped.metrics().steps.back().step;
    CHECK(last > kFirstSteps);
    REQUIRE(last < kFirstSteps + kMoreSteps);
    CHECK(newest_checkpoint_step(stopped) == last);
    CHECK(says(panel, "stopped: step"));
    CHECK(panel.number("worker/step_done") == static_cast<double>(last));
    CHECK(panel.number("worker/to_step") == kFirstSteps + kMoreSteps);
    check_looks(panel);
    // From there as many steps more.
    press("run", "Run 20 steps with this plan");
    panel.settle();
    CHECK(says(panel, "done: step"));
    const RunReader after = RunReader::open(folder / "run");
    CHECK(after.manifest().sessions.size() == 3);
    const std::vector<StepRecord> steps = after.metrics().steps;
    REQUIRE(steps.size() == static_cast<std::size_t>(last + kMoreSteps));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(steps[i].step == static_cast<std::int64_t>(i) + 1);
    }
  }
}

TEST_CASE("budget panel: every command, by keys alone") {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps);
  BudgetWindow panel(folder / "run");
  panel.show_window();
  std::vector<std::string_view> left;
  for (const AppCommand& each : panel_named("budget")->commands) left.push_back(each.id);
  const auto command = [&](std::string_view id) {
    CAPTURE(id);
    panel.run_by_keys(command_named(id)->title);
    panel.settle();
    CHECK_FALSE(panel.window.workbench().notice.is_error);
    std::erase(left, id);
  };
  const double plain = panel.number("facts/peak");
  for (const std::string level : {"1", "2", "auto", "none"}) {
    command("budget." + level);
    CHECK(panel.item("level/" + level).value == "on");
  }
  command("budget.least");
  const double least = panel.number("facts/peak");
  CHECK(least < plain);
  command("budget.more");
  const double more = panel.number("facts/peak");
  CHECK(more > least);
  command("budget.less");
  CHECK(panel.number("facts/peak") == least);
  const std::vector<const Item*> values = panel.window.items().below("main/budget/value/");
  REQUIRE_FALSE(values.empty());
  const std::string value = values.front()->label;
  REQUIRE(panel.window.workbench().select_named("value:" + value));
  command("budget.pin");
  CHECK(panel.find("unpin") != nullptr);
  command("budget.unpin");
  CHECK(panel.find("unpin") == nullptr);
  CHECK(panel.find("copy_command") == nullptr);
  command("budget.config");
  CHECK(panel.find("copy_command") != nullptr);
  command("budget.run");
  CHECK(panel.number("worker/arena/measured") == panel.number("facts/peak"));
  CHECK(RunReader::open(folder / "run").manifest().sessions.size() == 2);
  CHECK(left == std::vector<std::string_view>{"budget.stop"});  // of a worker that trains: above
}

TEST_CASE("budget panel: a run whose schedule has ended is trained on as a new run, and opened") {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps, {"--schedule", "cosine"});
  BudgetWindow panel(folder / "run");
  panel.click("level/1");
  const double peak = panel.number("facts/peak");
  panel.click("run");
  CHECK(panel.number("worker/arena/measured") == peak);
  CHECK(RunReader::open(folder / "run").manifest().sessions.size() == 1);
  const RunReader made = RunReader::open(folder / "run-2");
  REQUIRE(made.metrics().steps.size() == kMoreSteps);
  CHECK(made.metrics().steps.front().step == kFirstSteps + 1);
  CHECK(panel.number("worker/loss") == made.metrics().steps.back().loss);
  CHECK(static_cast<double>(made.plan().value().view().arena().bytes) == peak);
  check_looks(panel);

  panel.click("worker/open");
  const RunData* shown = panel.window.workbench().run();
  REQUIRE(shown != nullptr);
  CHECK(shown->path() == folder / "run-2");
  CHECK(panel.window.workbench().count() == 2);  // Runs has them beside each other
  CHECK(panel.item("run").enabled);
  check_looks(panel);
}

TEST_CASE("budget panel: a worker that ends while another panel is shown is told of") {
  const TemporaryFolder folder;
  recorded_run(folder, kFirstSteps);
  BudgetWindow panel(folder / "run");
  panel.window.click("main/budget/run");
  panel.window.app().show_only("kernels");
  panel.settle();
  CHECK(panel.window.workbench().notice.text.find("The worker has ended") != std::string::npos);
  CHECK(children().empty());
  panel.window.app().show_only("budget");
  panel.settle();
  CHECK(panel.item("run").enabled);
  CHECK(panel.number("worker/arena/measured") == panel.number("facts/peak"));
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
