// The Timeline panel by its items.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/core/file.h"
#include "gui/panels/panels.h"
#include "gui/panels/timeline_state.h"
#include "profiler/analysis/breakdown.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class TimelineWindow : public test::WindowDriver {
 public:
  explicit TimelineWindow(const std::filesystem::path& run = test::text_run().folder())
      : WindowDriver(run) {
    app().show_only("timeline");
    step(2);
  }
  TimelineState& timeline() { return workbench().state<TimelineState>(); }
  std::int64_t seen_ns() { return timeline().view.end_ns - timeline().view.begin_ns; }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("timeline: it begins with the step of median length and sums of all steps") {
  TimelineWindow window;
  std::vector<StepSpan> steps = window.timeline().data.steps;
  REQUIRE(steps.size() == 3);
  std::ranges::sort(steps, {},
                    [](const StepSpan& step) { return step.range.end_ns - step.range.begin_ns; });
  const TimeRange view = window.timeline().view;
  CHECK(view.begin_ns <= steps[1].range.begin_ns);
  CHECK(view.end_ns >= steps[1].range.end_ns);
  CHECK(window.seen_ns() < 2 * (steps[1].range.end_ns - steps[1].range.begin_ns));
  CHECK(window.timeline().summed.begin_ns == window.timeline().data.steps.front().range.begin_ns);
  CHECK(window.timeline().summed.end_ns == window.timeline().data.steps.back().range.end_ns);
  CHECK(!window.items().below("main/timeline/sums/row/").empty());
}

TEST_CASE("timeline: a clicked step is the range, and its sums are within it") {
  TimelineWindow window;
  REQUIRE(window.click("main/timeline/fit"));
  CHECK(window.timeline().view == window.timeline().data.whole);
  const std::vector<const Item*> spans = window.items().below("main/timeline/span/");
  std::string path;
  for (const Item* span : spans) {
    if (span->label == "step 2") path = span->path;
  }
  REQUIRE(!path.empty());
  REQUIRE(window.click(path));
  window.step(2);
  CHECK(window.workbench().selection().step == 2);
  CHECK(window.workbench().selection().range == window.timeline().data.steps[1].range);
  CHECK(window.timeline().sums.range_ns == window.workbench().selection().range.end_ns -
                                               window.workbench().selection().range.begin_ns);
  CHECK(window.timeline().sums.spans_ns <= window.timeline().sums.range_ns);
  REQUIRE(window.click("main/timeline/no_range"));
  window.step();
  CHECK(window.workbench().selection().range.empty());
  window.key(".");
  window.step();
  REQUIRE_FALSE(window.workbench().selection().range.empty());
  const auto step = window.workbench().selection().step;
  window.key("Esc");
  window.step();
  CHECK(window.workbench().selection().range.empty());
  CHECK(window.workbench().selection().step == step);
}

TEST_CASE(
    "timeline: near enough calls are spans that can be clicked, with flows to their readers") {
  TimelineWindow window;
  window.workbench().request("timeline.next_step");
  window.step(2);
  for (int i = 0; i < 12; ++i) window.wheel("main/timeline/rows", 1.0F);
  window.step(2);
  std::string path;
  for (const Item* span : window.items().below("main/timeline/span/")) {
    if (span->label.find("MatMul") != std::string::npos && span->rect.width > 4.0F) {
      path = span->path;
    }
  }
  REQUIRE(!path.empty());
  REQUIRE(window.click(path));
  window.step(2);
  CHECK(window.workbench().selection().call != kNoRow);
  CHECK(!window.timeline().flows.empty());
}

TEST_CASE("timeline: keys zoom, move, and go from call to call and step to step") {
  TimelineWindow window;
  window.click("main/timeline/rows");
  window.key("f");
  window.step();
  const std::int64_t whole = window.seen_ns();
  window.key("w");
  window.step();
  CHECK(window.seen_ns() < whole);
  const std::int64_t begin = window.timeline().view.begin_ns;
  window.key("d");
  window.step();
  CHECK(window.timeline().view.begin_ns > begin);
  window.key("f");
  window.step();
  CHECK(window.seen_ns() == whole);
  window.workbench().select_named("call:3");
  window.step();
  window.key("Right");
  window.step();
  CHECK(window.workbench().selection().call == 4);
  window.key(".");
  window.step();
  CHECK(!window.workbench().selection().range.empty());
}

TEST_CASE("timeline: a drag with Shift is the range between its ends, one without moves the view") {
  TimelineWindow window;
  window.wheel("main/timeline/rows", 2.0F);  // there is more on both sides
  window.step();
  const TimeRange view = window.timeline().view;
  const double width = static_cast<double>(view.end_ns - view.begin_ns);
  const auto share_of = [&](std::int64_t ns) {
    return static_cast<double>(ns - view.begin_ns) / width;
  };
  const auto drag = [&](float from, float to, const Chord& modifiers) {
    REQUIRE(window.drag_within("main/timeline/rows", {from, 0.5F}, {to, 0.5F}, modifiers));
    window.step();
    return window.workbench().selection().range;
  };
  const TimeRange range = drag(0.25F, 0.75F, {.shift = true});
  CHECK(share_of(range.begin_ns) == doctest::Approx(0.25).epsilon(0.01));
  CHECK(share_of(range.end_ns) == doctest::Approx(0.75).epsilon(0.01));
  CHECK(window.timeline().sums.range_ns == range.end_ns - range.begin_ns);
  const TimeRange backwards = drag(0.75F, 0.5F, {.shift = true});
  CHECK(share_of(backwards.begin_ns) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(share_of(backwards.end_ns) == doctest::Approx(0.75).epsilon(0.01));
  CHECK(window.timeline().view == view);
  CHECK(drag(0.5F, 0.25F, {}) == backwards);
  CHECK(window.timeline().view.begin_ns > view.begin_ns);
}

TEST_CASE("timeline: sums by another word, and the twin with it") {
  TimelineWindow window;
  window.timeline().by = profiler::GroupBy::kPhase;
  window.step(2);
  CHECK(window.timeline().sums.rows.size() >= 3);
  const Panel& panel = *panel_named("timeline");
  CHECK(panel.twin(window.workbench()).find("--by phase") != std::string::npos);
  CHECK(panel.table(window.workbench()).rows.size() == window.timeline().sums.rows.size());
}

TEST_CASE("timeline: sums are walked by arrows, and select nodes, kernels and stages") {
  TimelineWindow window;
  const auto chosen = [&] {
    for (std::size_t i = 0; i < window.timeline().sums.rows.size(); ++i) {
      const Item* row = window.items().find("main/timeline/sums/row/" + std::to_string(i) + "/");
      if (row != nullptr && row->value == "chosen") return static_cast<int>(i);
    }
    return -1;
  };
  const auto choose_first_call = [&](profiler::GroupBy by) {
    window.timeline().by = by;
    window.step(2);
    const auto call = std::ranges::find_if(window.timeline().sum_rows, [&](std::uint32_t row) {
      return window.timeline().sums.rows[row].is_call;
    });
    const auto at = call - window.timeline().sum_rows.begin();
    REQUIRE(window.click("main/timeline/sums/row/" + std::to_string(at) + "/"));
    window.step();
    CHECK(chosen() == at);
    return window.timeline().sums.rows[*call].name;
  };
  choose_first_call(profiler::GroupBy::kOp);
  CHECK(window.workbench().selection().subject == Subject::kNothing);
  for (int i = 0; i < 4; ++i) {  // past what is no call
    const int before = chosen();
    window.key("Down");
    CHECK(chosen() == before + 1);
  }
  const std::string kernel = choose_first_call(profiler::GroupBy::kKernel);
  CHECK(window.workbench().selected_name() == "kernel:" + kernel);
  choose_first_call(profiler::GroupBy::kNode);
  CHECK(window.workbench().selection().subject == Subject::kNode);
  const int node = chosen();
  window.key("Down");
  CHECK(chosen() == node + 1);
  // The first pass of which there is a stage.
  window.timeline().by = profiler::GroupBy::kPass;
  window.step(2);
  const std::span<const StageFacts> stages = window.workbench().run()->stages();
  bool is_shown = false;
  for (std::size_t i = 0; i < window.timeline().sum_rows.size() && !is_shown; ++i) {
    const std::string name = window.timeline().sums.rows[window.timeline().sum_rows[i]].name;
    const auto stage = std::ranges::find_if(
        stages, [&](const StageFacts& each) { return each.record.name == name; });
    if (stage == stages.end()) continue;
    REQUIRE(window.click("main/timeline/sums/row/" + std::to_string(i) + "/"));
    CHECK(window.workbench().selection().stage == stage - stages.begin());
    is_shown = true;
  }
  CHECK(is_shown);
}

TEST_CASE(
    "timeline: what is copied of a range is its statistics, and the command line that prints it") {
  TimelineWindow window;
  const Panel& panel = *panel_named("timeline");
  const CopiedTable all = panel.table(window.workbench());
  window.workbench().request("timeline.next_step");
  window.step(2);
  const TimeRange range = window.workbench().selection().range;
  REQUIRE_FALSE(range.empty());
  const CopiedTable of_step = panel.table(window.workbench());
  CHECK(of_step.head == std::vector<std::string>{"name", "is_call", "ns", "share", "spans"});
  CHECK(of_step.rows.size() == all.rows.size());
  CHECK(of_step.rows != all.rows);
  CHECK(panel.twin(window.workbench())
            .find("--range " + std::to_string(range.begin_ns) + ":" +
                  std::to_string(range.end_ns)) != std::string::npos);
  // As the table is sorted.
  REQUIRE(window.click("main/timeline/sums/column/name"));
  window.step(2);
  const CopiedTable by_name = panel.table(window.workbench());
  CHECK(by_name.rows != of_step.rows);
  CHECK(std::ranges::is_sorted(by_name.rows,
                               [](const auto& a, const auto& b) { return a[0] < b[0]; }));
}

TEST_CASE("timeline: a profile that grows is looked at where it was") {
  const trainscope::test::TemporaryFolder folder;
  const std::filesystem::path copy = folder / "run";
  std::filesystem::copy(test::text_run().folder(), copy, std::filesystem::copy_options::recursive);
  const std::size_t calls = RunReader::open(copy).plan().value().view().calls.size();
  std::vector<profiler::Event> begun = test::steps_of(calls, 1);
  begun.pop_back();  // the step, which is written at its end
  test::write_profile(copy, begun);
  TimelineWindow window(copy);
  const auto grow = [&](std::uint32_t steps) {
    test::write_profile(copy, test::steps_of(calls, steps));
    REQUIRE(window.workbench().refresh());
    window.step(2);
    REQUIRE(window.timeline().data.steps.size() == steps);
  };
  CHECK(window.timeline().view == window.timeline().data.whole);
  grow(3);  // its first steps: the usual one is shown
  CHECK(window.seen_ns() < window.timeline().data.whole.end_ns / 2);
  REQUIRE(window.click("main/timeline/rows"));
  for (const char* key : {"f", "w", "w", "d"}) {
    window.key(key);
    window.step();
  }
  const TimeRange view = window.timeline().view;
  grow(9);
  CHECK(window.timeline().view == view);
}

TEST_CASE("timeline: a run without a profile says how one is made") {
  test::WindowDriver window(test::plain_run().folder());
  window.app().show_only("timeline");
  window.step(2);
  CHECK(window.items().below("main/timeline/span/").empty());
  CHECK(faults_of(window.items()).empty());
}

// A trace of two streams on one device, and work of one that the trace does not number.
constexpr const char* kTwoStreams = R"json({"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 0, "dur": 100},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 5, "dur": 10,
   "args": {"External id": 1}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 9, "tid": 9, "ts": 20, "dur": 10,
   "args": {"External id": 2}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 20, "ts": 12, "dur": 30,
   "args": {"External id": 1, "device": 0, "stream": 20}},
  {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 25, "dur": 30,
   "args": {"External id": 2, "device": 0, "stream": 7}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": "odd", "ts": 60, "dur": 5}
]})json";

TEST_CASE("timeline: each stream of a device has a row with its name, below the host's threads") {
  const trainscope::test::TemporaryFolder folder;
  write_file_atomic(folder / "trace.json", std::string_view(kTwoStreams));
  const std::string run = (folder / "run").string();
  const auto imported =
      trainscope::test::run({"import", (folder / "trace.json").string(), "-o", run});
  REQUIRE_MESSAGE(imported.exit_code == 0, imported.err);
  TimelineWindow window(run);
  std::vector<std::string> names;
  for (const Item* item : window.items().below("main/timeline/")) {
    const bool is_name = item->label.starts_with("thread ") || item->label.starts_with("device ");
    if (item->kind == ItemKind::kLabel && is_name) names.push_back(item->label);
  }
  CHECK(names == std::vector<std::string>{"thread 0", "device work", "device 0 stream 7",
                                          "device 0 stream 20"});
  CHECK(faults_of(window.items()).empty());
  // Each has what ran in it, and nothing else.
  const auto kernels_of = [&](std::uint16_t thread) {
    std::vector<std::string> kernels;
    const PlanView& plan = *window.workbench().run()->plan();
    const TimelineData& data = window.timeline().data;
    for (const TimelineRow& row : data.rows) {
      if (row.thread != thread) continue;
      for (const std::uint32_t i : row.events) {
        kernels.emplace_back(profiler::kernel_of(plan, plan.calls[data.index.event(i).id]));
      }
    }
    return kernels;
  };
  CHECK(kernels_of(2) == std::vector<std::string>{"add"});
  CHECK(kernels_of(3) == std::vector<std::string>{"gemm"});
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
