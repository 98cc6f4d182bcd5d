// The panels Overview and Inspector by their items.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "gui/panels/panels.h"
#include "profiler/analysis/breakdown.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

class PanelWindow : public WindowDriver {
 public:
  PanelWindow(std::string_view panel, const std::filesystem::path& run = test::text_run().folder())
      : WindowDriver(run) {
    app().show_only(panel);
    step(2);
  }
  double number(std::string_view path) const {
    const Item* item = items().find(path);
    return item == nullptr ? std::nan("") : item->number;
  }
  const PlanView& plan() { return *workbench().run()->plan(); }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("overview: cards are of the steps and of the plan") {
  PanelWindow window("overview");
  const Metrics& metrics = window.workbench().run()->metrics();
  const StepRecord& last = metrics.steps.back();
  CHECK(window.number("main/overview/card/steps") == static_cast<double>(last.step));
  CHECK(window.number("main/overview/card/loss") == last.loss);
  CHECK(window.number("main/overview/card/step") == metrics.median_step_ms());
  CHECK(window.number("main/overview/card/peak memory") ==
        static_cast<double>(window.plan().arena().bytes));
  CHECK(window.number("main/overview/card/lower bound") ==
        static_cast<double>(window.plan().arena().lower_bound_bytes));
}

TEST_CASE("overview: what holds the peak adds up to what is alive then") {
  PanelWindow window("overview");
  const std::vector<std::int64_t> live = trainscope::live_bytes(window.plan());
  CHECK(window.number("main/overview/peak/live") ==
        static_cast<double>(*std::ranges::max_element(live)));
  double sum = 0.0;
  for (const Item* item : window.items().below("main/overview/peak/")) {
    if (item->path.ends_with("/number")) sum += item->number;
  }
  CHECK(sum == window.number("main/overview/peak/live"));
}

TEST_CASE("overview: bars of ops are the longest first, and lead to Kernels") {
  PanelWindow window("overview");
  CHECK(window.number("main/overview/time/0/number") >=
        window.number("main/overview/time/1/number"));
  WindowDriver whole(test::text_run().folder());
  REQUIRE(whole.click("main/overview/time/0/"));
  CHECK(whole.has("main/kernels/filter"));
}

TEST_CASE("overview: its questions lead to the panels with the answers") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(window.click("main/overview/ask/peak"));
  CHECK(window.workbench().selection().subject == Subject::kBuffer);
  CHECK(window.layout().workspace == "memory");
  window.key("F5");
  REQUIRE(window.click("main/overview/ask/slow"));
  CHECK(window.layout().workspace == "kernels");
  window.key("F5");
  REQUIRE(window.click("main/overview/ask/stages"));
  CHECK(window.layout().workspace == "graph");
}

TEST_CASE("overview: a run without a profile says how to make one, beside the rest") {
  PanelWindow window("overview", test::plain_run().folder());
  CHECK(window.has("main/overview/card/loss"));
  CHECK_FALSE(window.items().below("main/overview/time/empty/").empty());
  CHECK_FALSE(window.items().find("main/overview/ask/slow")->enabled);
}

TEST_CASE("overview: a trace of another tool has calls, and no memory to fit or to advise on") {
  const trainscope::test::TemporaryFolder folder;
  const std::string trace = TRAINSCOPE_SOURCE_DIR "/tests/data/traces/pytorch-gpu-graph.json.gz";
  const std::string run = (folder / "run").string();
  REQUIRE(trainscope::test::run({"import", trace, "-o", run}).exit_code == 0);
  PanelWindow window("overview", run);
  window.workbench().works_ahead = true;
  window.step(2);
  while (window.workbench().is_reading_ahead()) window.step();
  window.step();
  CHECK(window.items().below("main/overview/advice/").empty());
  CHECK_FALSE(window.workbench().under_way);
  const RunData& opened = *window.workbench().run();
  REQUIRE(opened.plan() != nullptr);
  CHECK_FALSE(opened.plan()->calls.empty());
  CHECK_FALSE(opened.has_memory_plan());
  for (const char* question : {"peak", "fit", "help"}) {
    INFO(question);
    const Item* item = window.items().find(std::string("main/overview/ask/") + question);
    REQUIRE(item != nullptr);
    CHECK_FALSE(item->enabled);
  }
  window.app().show_only("runs");
  window.step(2);
  REQUIRE_FALSE(window.items().below("main/runs/runs/row/0/").empty());
  CHECK(std::ranges::none_of(window.items().items(), [](const Item& item) {
    return item.fact.find("/arena_bytes") != std::string::npos;
  }));
  CHECK(panel_named("memory")->table(window.workbench()).rows.empty());
}

TEST_CASE("overview: copied are the cards") {
  PanelWindow window("overview");
  const CopiedTable copied = panel_named("overview")->table(window.workbench());
  REQUIRE(copied.rows.size() >= 5);
  CHECK(copied.rows[0] == std::vector<std::string>{"steps", "5"});
}

TEST_CASE("inspector: nothing, a node, a tensor, a buffer, a kernel") {
  PanelWindow window("inspector");
  const auto says = [&](std::string_view part) {
    return std::ranges::any_of(window.items().below("main/inspector/"), [&](const Item* item) {
      return item->label.find(part) != std::string::npos;
    });
  };
  CHECK(says("Nothing selected"));
  const PlanLinks& links = *window.workbench().links();
  window.workbench().select(select_call(links, {}, 2));
  window.step(2);
  CHECK(says("made by"));
  CHECK(says("reads"));
  const auto value = std::ranges::find_if(
      window.plan().values, [](const PlanValue& v) { return v.serial != 0 && v.buffer != kNoRow; });
  window.workbench().select(select_value(links, {}, value->serial));
  window.step(2);
  CHECK(says("tensor"));
  CHECK(says("Where it lies"));
  window.workbench().select(select_buffer(links, {}, 0));
  window.step(2);
  CHECK(says("alive"));
  const std::string kernel(profiler::kernel_of(window.plan(), window.plan().calls[0]));
  window.workbench().select(select_kernel(links, {}, kernel));
  window.step(2);
  CHECK(says(kernel));
  CHECK(says("Nodes that it computes"));
}

TEST_CASE("inspector: links are walked by Tab and followed by Enter") {
  PanelWindow window("inspector");
  window.workbench().select(select_call(*window.workbench().links(), {}, 2));
  window.step(2);
  const std::string before = window.workbench().selected_name();
  std::string target;
  for (int i = 0; i < 40 && target.empty(); ++i) {
    window.key("Tab");
    const Item* item = window.items().find(window.app().memory().focus);
    if (item != nullptr && item->path.ends_with("/link") && item->value != before) {
      target = item->value;
    }
  }
  REQUIRE_FALSE(target.empty());
  window.key("Enter");
  window.step();
  CHECK(window.workbench().selected_name() == target);
}

TEST_CASE("inspector: its twin is of what is shown") {
  PanelWindow window("inspector");
  const PlanLinks& links = *window.workbench().links();
  const auto twin = [&](const Selection& selection) {
    window.workbench().select(selection);
    window.step(2);
    return panel_named("inspector")->twin(window.workbench());
  };
  CHECK(twin(select_call(links, {}, 2)).find("--node ") != std::string::npos);
  const std::string kernel(profiler::kernel_of(window.plan(), window.plan().calls[0]));
  CHECK(twin(select_kernel(links, {}, kernel)).starts_with("trainscope query "));
  CHECK(twin(select_buffer(links, {}, 0)).ends_with("--memory"));
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
