// The Runs panel by its items.
#include <doctest/doctest.h>

#include <string>

#include "gui/app/bookmarks.h"
#include "gui/panels/panels.h"
#include "gui/panels/runs_state.h"
#include "tests/gui/panels/table_rows.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class RunsWindow : public test::WindowDriver {
 public:
  explicit RunsWindow(bool two) : WindowDriver(test::text_run().folder()) {
    if (two) {
      workbench().open(test::plain_run().folder());
      workbench().activate(0);
    }
    app().show_only("runs");
    step(2);
  }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("runs: one run is listed, and a second one asked for") {
  RunsWindow window(false);
  CHECK(test::rows_below(window.items(), "main/runs/runs/row/") == 1);
  CHECK(window.items().below("main/runs/difference/row/").empty());
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("runs: two runs are held against each other by node") {
  RunsWindow window(true);
  CHECK(test::rows_below(window.items(), "main/runs/runs/row/") == 2);
  CHECK(!window.items().below("main/runs/difference/row/").empty());
  const Item* arena = window.items().find("main/runs/arena_a");
  REQUIRE(arena != nullptr);
  CHECK(arena->number ==
        doctest::Approx(static_cast<double>(window.workbench().run()->plan()->arena().bytes)));
  CHECK(arena->fact == "/arena_a");
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("runs: a clicked run becomes the active one, and the other one B") {
  RunsWindow window(true);
  REQUIRE(window.click("main/runs/runs/row/1/"));
  window.step(2);
  CHECK(window.workbench().active() == 1);
  const std::string twin = panel_named("runs")->twin(window.workbench());
  CHECK(twin.find("trainscope compare") == 0);
  CHECK(twin.find(test::text_run().folder().string()) != std::string::npos);
  CHECK(!panel_named("runs")->table(window.workbench()).rows.empty());
}

TEST_CASE("runs: a Shift-clicked run is B, and a view names it") {
  RunsWindow window(true);
  window.workbench().open(test::image_run().folder());
  window.workbench().activate(0);
  REQUIRE(show_view(window.workbench(), "runs"));
  window.step(2);
  CHECK(view_of(window.workbench()) == "runs");
  REQUIRE(test::shift_click(window, "main/runs/runs/row/2/"));
  CHECK(window.workbench().active() == 0);
  CHECK(other_run(window.workbench()) == &window.workbench().source(2));
  CHECK(window.says("main/runs/runs/row/2/", "B"));
  const std::string name = window.workbench().source(2).name();
  const std::string view = "runs,with=" + name;
  CHECK(view_of(window.workbench()) == view);
  CHECK(command_of_view(window.workbench()) ==
        "trainscope gui " + test::image_run().folder().string() + " " +
            test::text_run().folder().string() + " --at " + view);
  REQUIRE(show_view(window.workbench(), "runs"));
  CHECK(other_run(window.workbench()) == &window.workbench().source(1));
  for (const std::string& with : {name, test::image_run().folder().string(), std::string("3")}) {
    REQUIRE(show_view(window.workbench(), "runs,with=" + with));
    CHECK(view_of(window.workbench()) == view);
  }
  for (const char* with : {"nobody", "1", "4"}) {
    CHECK_FALSE(show_view(window.workbench(), std::string("runs,with=") + with));
    CHECK(window.workbench().notice.is_error);
  }
}

TEST_CASE("runs: Tab comes to the differences, whose rows select nodes") {
  RunsWindow window(true);
  const std::string keys = "main/runs/difference/keys";
  for (int i = 0; i < 60 && window.app().memory().focus != keys; ++i) window.key("Tab");
  REQUIRE(window.app().memory().focus == keys);
  const auto& state = window.workbench().state<RunsState>();
  bool is_in_a = false;
  bool is_in_b = false;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    window.key("Down");
    const Item* row = window.items().find("main/runs/difference/row/" + std::to_string(i) + "/");
    REQUIRE(row != nullptr);
    CHECK(row->value == "chosen");
    const profiler::DifferenceRow& difference = state.difference.rows[state.rows[i]];
    if (!difference.time.is_call) continue;
    if (difference.a.calls > 0) {
      is_in_a = true;
      const PlanView& plan = *window.workbench().run()->plan();
      const std::uint32_t call = window.workbench().selection().call;
      REQUIRE(call < plan.calls.size());
      CHECK(profiler::onnx_node_of(plan, plan.calls[call]) == difference.time.name);
    } else {
      is_in_b = true;
      CHECK(window.workbench().notice.text.starts_with(difference.time.name + " is in B alone"));
    }
  }
  CHECK(is_in_a);
  CHECK(is_in_b);
  CHECK(window.workbench().active() == 0);
}

// The text run's model, as a plan that computes some nodes twice.
const test::MadeRun& recomputing_run() {
  static const test::MadeRun run(
      "recomputing", *[] {
        const OnnxModel model = test::model_of("gpt2", test::kSmallText);
        CompileOptions options = test::options_for(model);
        options.recompute.mode = RecomputeMode::kLevel2;
        return compile(model, options);
      }());
  return run;
}

TEST_CASE("runs: nodes that B computes twice say so, with the bytes that they have more") {
  RunsWindow window(false);
  window.workbench().open(recomputing_run().folder());
  window.workbench().activate(0);
  window.step(2);
  const auto& state = window.workbench().state<RunsState>();
  REQUIRE(window.click("main/runs/difference/column/difference_bytes"));
  window.step();
  int twice = 0;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    const profiler::DifferenceRow& row = state.difference.rows[state.rows[i]];
    const std::string path = "main/runs/difference/row/" + std::to_string(i) + "/";
    const Item* calls = window.items().find(path + "b_calls");
    if (calls == nullptr || row.a.calls == row.b.calls) continue;
    ++twice;
    CHECK(calls->number == static_cast<double>(row.b.calls));
    CHECK(calls->fact == "/rows/" + std::to_string(state.rows[i]) + "/plan_b/calls");
    const Item* bytes = window.items().find(path + "difference_bytes");
    if (row.a.bytes == row.b.bytes) continue;
    REQUIRE(bytes != nullptr);
    CHECK(bytes->number == static_cast<double>(row.b.bytes - row.a.bytes));
  }
  CHECK(twice > 0);
  CHECK(faults_of(window.items()).empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
