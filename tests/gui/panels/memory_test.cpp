// The Memory panel by its items.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gui/panels/memory_state.h"
#include "gui/panels/panels.h"
#include "tests/gui/panels/table_rows.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class MemoryWindow : public test::WindowDriver {
 public:
  MemoryWindow() : WindowDriver(test::text_run().folder()) {
    app().show_only("memory");
    step(2);
  }
  MemoryState& memory() { return workbench().state<MemoryState>(); }
  const PlanView& plan() { return *workbench().run()->plan(); }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("memory: it begins at the peak, with every rectangle of the plan") {
  MemoryWindow window;
  CHECK(window.memory().cursor == window.memory().map.peak_time);
  CHECK(window.memory().frame.boxes.size() + window.memory().frame.merged ==
        window.memory().map.rectangles.size());
  CHECK(window.items().find("main/memory/live")->number ==
        doctest::Approx(static_cast<double>(window.memory().map.peak_bytes)));
  CHECK(window.items().find("main/memory/arena")->number ==
        doctest::Approx(static_cast<double>(window.plan().arena().bytes)));
}

TEST_CASE("memory: names of rectangles are read on the colour of their class") {
  MemoryWindow window;
  REQUIRE(window.click("main/memory/alive/row/0/"));
  window.workbench().request("memory.to_buffer");  // large enough for its name
  window.step(2);
  const Theme& theme = theme_of(ThemeName::kDark);
  std::size_t names = 0;
  for (const Item* item : window.items().below("main/memory/")) {
    const bool is_name = item->kind == ItemKind::kLabel &&
                         std::ranges::find(theme.series, item->paper) != theme.series.end();
    if (!is_name) continue;
    ++names;
    CHECK(item->ink == ink_on(item->paper));
  }
  CHECK(names > 0);
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("memory: the legend says what is hatched, where the plan has any") {
  const OnnxModel model = test::model_of("gpt2", test::kSmallText);
  CompileOptions options = test::options_for(model);
  options.recompute.mode = RecomputeMode::kLevel1;
  const test::MadeRun recomputed("recomputed", *compile(model, options), 0);
  for (const bool is_hatched : {false, true}) {
    test::WindowDriver window(is_hatched ? recomputed.folder() : test::text_run().folder());
    window.app().show_only("memory");
    window.step(2);
    CHECK(window.says("main/memory/", "recomputed") == is_hatched);
    CHECK(faults_of(window.items()).empty());
  }
}

TEST_CASE("memory: which op holds the peak is the first row") {
  MemoryWindow window;
  REQUIRE(window.click("main/memory/alive/row/0/"));
  window.step();
  const std::uint32_t buffer = window.workbench().selection().buffer;
  REQUIRE(buffer != kNoRow);
  CHECK(holders_at(window.plan(), window.memory().map.peak_time).front() == buffer);
  CHECK(window.memory().cursor == window.memory().map.peak_time);
}

TEST_CASE("memory: the cursor walks by keys, and the selection follows it") {
  MemoryWindow window;
  window.click("main/memory/plane");
  window.key("Home");
  window.step();
  CHECK(window.memory().cursor == 0);
  for (int i = 0; i < 5; ++i) window.key("Right");
  window.step();
  CHECK(window.memory().cursor == 5);
  CHECK(window.plan().calls[window.workbench().selection().call].time == 5);
  window.key("End");
  window.step();
  CHECK(window.memory().cursor == window.memory().map.times - 1);
  window.key("p");
  window.step();
  CHECK(window.memory().cursor == window.memory().map.peak_time);
}

TEST_CASE("memory: a selected call moves the cursor to its time") {
  MemoryWindow window;
  REQUIRE(window.workbench().select_named("call:7"));
  window.step(2);
  CHECK(window.memory().cursor == window.plan().calls[7].time);
}

TEST_CASE("memory: the cursor stays at the peak for what is alive there, however it is selected") {
  MemoryWindow window;
  const std::uint32_t peak = window.memory().map.peak_time;
  const PlanView& plan = window.plan();
  const auto made_at = [&](const Selection& selection) {
    return selection.call == kNoRow ? peak : plan.calls[selection.call].time;
  };
  std::size_t stayed = 0;
  std::size_t went = 0;
  for (std::uint32_t id = 0; id < plan.buffers.size(); ++id) {
    INFO(id);
    window.memory().cursor = peak;
    REQUIRE(window.workbench().select_named("buffer:" + std::to_string(id)));
    window.step();
    const std::uint32_t made = made_at(window.workbench().selection());
    const bool is_alive = plan.buffers[id].begin <= peak && peak < plan.buffers[id].end;
    CHECK(window.memory().cursor == (is_alive ? peak : made));
    stayed += is_alive && made != peak ? 1 : 0;
    went += !is_alive ? 1 : 0;
  }
  CHECK(stayed > 0);
  CHECK(went > 0);
  // A node has its call, wherever the cursor is.
  window.memory().cursor = peak;
  REQUIRE(window.workbench().select_named("call:3"));
  window.step();
  CHECK(window.memory().cursor == plan.calls[3].time);
}

TEST_CASE(
    "memory: idle buffers are listed by size times wait, and lead to the middle of the wait") {
  MemoryWindow window;
  REQUIRE(window.click("main/memory/list/idle"));
  window.step(2);
  REQUIRE(window.click("main/memory/idle/row/0/"));
  window.step();
  const IdleWait& wait = window.memory().idle.front();
  CHECK(window.workbench().selection().buffer == wait.buffer);
  CHECK(window.memory().cursor >= wait.from);
  CHECK(window.memory().cursor <= wait.to);
}

TEST_CASE("memory: gaps are what is free at the cursor, in the plane and in a list") {
  MemoryWindow window;
  REQUIRE(window.click("main/memory/list/gaps"));
  window.step(2);
  // A time with a gap between buffers.
  const auto has_gap_between = [&] {
    return std::ranges::any_of(window.memory().gaps, [&](const PlanGap& gap) {
      return gap.offset + gap.bytes < window.plan().arena().bytes;
    });
  };
  window.click("main/memory/plane");
  window.key("Home");
  while (!has_gap_between() && window.memory().cursor + 1 < window.memory().map.times) {
    window.key("Right");
  }
  REQUIRE(has_gap_between());
  const std::vector<PlanGap> gaps = window.memory().gaps;
  std::int64_t free = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    free += gaps[i].bytes;
    const Item* mark = window.items().find("main/memory/gap/" + std::to_string(i));
    REQUIRE(mark != nullptr);
    CHECK(mark->kind == ItemKind::kMark);
  }
  CHECK(free + window.memory().map.live[window.memory().cursor] == window.plan().arena().bytes);
  CHECK(window.items().find("main/memory/free")->number == static_cast<double>(free));
  CHECK(test::rows_below(window.items(), "main/memory/gaps/row/") == gaps.size());
  CHECK(faults_of(window.items()).empty());
  // By keys: the largest first, then the next.
  window.key("Down");
  const std::uint32_t largest = window.memory().chosen_gap;
  REQUIRE(largest < gaps.size());
  CHECK(gaps[largest].bytes == std::ranges::max(gaps, {}, &PlanGap::bytes).bytes);
  // It stays chosen as long as it is there.
  const std::int64_t offset = gaps[largest].offset;
  window.key("Right");
  const std::uint32_t chosen = window.memory().chosen_gap;
  CHECK((chosen == kNoRow ||
         (window.memory().gaps[chosen].offset <= offset &&
          offset < window.memory().gaps[chosen].offset + window.memory().gaps[chosen].bytes)));
}

TEST_CASE("memory: a click into a gap of the plane chooses it, one on a buffer does not") {
  MemoryWindow window;
  window.workbench().request("memory.gaps");
  window.step(2);
  window.click("main/memory/plane");
  window.key("Home");
  std::string path;
  while (path.empty() && window.memory().cursor + 1 < window.memory().map.times) {
    window.key("Right");
    for (const Item* mark : window.items().below("main/memory/gap/")) {
      if (mark->seen.width > 8.0F && mark->seen.height > 4.0F) path = mark->path;
    }
  }
  REQUIRE_FALSE(path.empty());
  const std::string id = path.substr(std::string("main/memory/gap/").size());
  const PlanGap gap = window.memory().gaps[std::stoul(id)];
  REQUIRE(window.click(path));
  window.step();
  REQUIRE(window.memory().chosen_gap != kNoRow);
  const PlanGap chosen = window.memory().gaps[window.memory().chosen_gap];
  CHECK(chosen.offset < gap.offset + gap.bytes);
  CHECK(gap.offset < chosen.offset + chosen.bytes);
  CHECK(window.memory().cursor >= gap.begin);
  CHECK(window.memory().cursor < gap.end);
  for (const Item* box : window.items().below("main/memory/box/")) {
    if (box->rect.width < 8.0F || box->rect.height < 8.0F) continue;
    REQUIRE(window.click(std::string(box->path)));
    break;
  }
  CHECK(window.memory().chosen_gap == kNoRow);
}

TEST_CASE("memory: a clicked rectangle is the buffer that is selected") {
  MemoryWindow window;
  window.workbench().request("memory.fit");
  window.step(2);
  for (const Item* box : window.items().below("main/memory/box/")) {
    if (box->rect.width < 8.0F || box->rect.height < 8.0F) continue;
    const std::string path = box->path;
    REQUIRE(window.click(path));
    window.step();
    const std::string id = path.substr(std::string("main/memory/box/").size());
    CHECK(std::to_string(window.workbench().selection().buffer) == id);
    break;
  }
}

TEST_CASE("memory: the wheel zooms in, F shows all again") {
  MemoryWindow window;
  const MemoryRange whole = window.memory().range;
  window.wheel("main/memory/plane", 3.0F);
  window.step();
  CHECK(window.memory().range.last_time - window.memory().range.first_time <
        whole.last_time - whole.first_time);
  window.click("main/memory/fit");
  window.step();
  CHECK(window.memory().range == whole);
}

TEST_CASE(
    "memory: the twin is inspect at the call of the cursor, and the table has what is alive") {
  MemoryWindow window;
  const Panel& panel = *panel_named("memory");
  const std::uint32_t call = call_at_cursor(window.memory());
  CHECK(panel.twin(window.workbench()).find("--memory --at " + std::to_string(call)) !=
        std::string::npos);
  CHECK(panel.table(window.workbench()).rows.size() ==
        alive_at(window.plan(), window.memory().cursor).size());
}

TEST_CASE("memory: what was measured stands beside the plan's, at each call and of each step") {
  MemoryWindow window;
  const Item* live = window.items().find("main/memory/live");
  const Item* bound = window.items().find("main/memory/bound_here");
  REQUIRE(live != nullptr);
  REQUIRE(bound != nullptr);
  CHECK(bound->number == live->number);
  CHECK(window.memory().map.bound == window.memory().map.live);
  CHECK(window.memory().frame.bound == window.memory().frame.live);
  REQUIRE(window.click("main/memory/list/process"));
  window.step(2);
  const Item* first = window.items().find("main/memory/resident/row/0/bytes");
  const Item* more = window.items().find("main/memory/resident/row/1/more_bytes");
  REQUIRE(first != nullptr);
  REQUIRE(more != nullptr);
  CHECK(first->number == static_cast<double>(window.memory().measured.resident.front().bytes));
  CHECK(more->number == static_cast<double>(window.memory().measured.resident[1].more_bytes));
  REQUIRE(window.click("main/memory/resident/row/1/"));
  window.step();
  CHECK(window.workbench().selection().step == 2);
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("memory: the list that is shown is the one that is copied") {
  MemoryWindow window;
  const Panel& panel = *panel_named("memory");
  for (const auto& [command, head] : {std::pair{"memory.gaps", "calls"},
                                      {"memory.idle", "byte_calls"},
                                      {"memory.process", "more_bytes"}}) {
    window.workbench().request(command);
    window.step(2);
    const CopiedTable table = panel.table(window.workbench());
    CHECK(table.head.back() == head);
    CHECK_FALSE(table.rows.empty());
  }
}

TEST_CASE("memory: a run that was not profiled says how its process would be measured") {
  test::WindowDriver window(test::plain_run().folder());
  window.app().show_only("memory");
  window.step(2);
  CHECK_FALSE(window.has("main/memory/bound_here"));
  REQUIRE(window.click("main/memory/list/process"));
  window.step(2);
  CHECK(window.items().below("main/memory/resident/row/").empty());
  CHECK(window.has("main/memory/empty/copy"));
  CHECK(faults_of(window.items()).empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
