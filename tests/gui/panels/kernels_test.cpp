// The Kernels panel by its items.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "gui/panels/panels.h"
#include "gui/panels/query/kernels_state.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class KernelsWindow : public test::WindowDriver {
 public:
  explicit KernelsWindow(const std::filesystem::path& run = test::text_run().folder())
      : WindowDriver(run) {
    app().show_only("kernels");
    step(2);
  }
  KernelsState& kernels() { return workbench().state<KernelsState>(); }
  const std::vector<profiler::BreakdownRow>& rows() { return kernels().rows.table.rows; }
  std::string twin() { return panel_named("kernels")->twin(workbench()); }
  double number(std::string_view path) const {
    const Item* item = items().find(path);
    return item == nullptr ? std::nan("") : item->number;
  }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("kernels: rows add up to the profiled steps, by whatever they are") {
  KernelsWindow window;
  for (const char* by : {"call", "kernel", "op", "node", "layer", "phase", "pass"}) {
    INFO(by);
    REQUIRE(window.click(std::string("main/kernels/by/") + by));
    std::int64_t sum = 0;
    for (const profiler::BreakdownRow& row : window.rows()) sum += row.ns;
    CHECK(sum == window.kernels().rows.table.total_ns);
    CHECK(window.twin().find(std::string("--by ") + by) != std::string::npos);
  }
}

TEST_CASE("kernels: the foot says how many rows and steps there are, and how long a step is") {
  KernelsWindow window;
  const profiler::Breakdown& table = window.kernels().rows.table;
  CHECK(window.number("main/kernels/step_ms") == doctest::Approx(table.ms(table.total_ns)));
  CHECK_FALSE(window.has("main/kernels/shown_ms"));
  window.click("main/kernels/filter");
  window.type("phase==backward");
  CHECK(window.number("main/kernels/shown_ms") < window.number("main/kernels/step_ms"));
}

TEST_CASE("kernels: every number column sorts its rows both ways") {
  KernelsWindow window;
  for (const NumberColumn* column : std::vector(window.kernels().columns)) {
    const std::string name(column->column.name);
    INFO(name);
    const std::string head = "main/kernels/table/column/" + name;
    if (!window.has(head)) continue;
    const auto values = [&] {
      std::vector<double> all;
      for (const profiler::BreakdownRow& row : window.rows()) {
        all.push_back(profiler::column_of(window.kernels().rows.table, row, name));
      }
      return all;
    };
    if (window.kernels().wishes.sort != name) REQUIRE(window.click(head));
    CHECK(std::ranges::is_sorted(values(), std::ranges::greater()));
    CHECK(window.items().find(head)->value == "descending");
    REQUIRE(window.click(head));
    CHECK(std::ranges::is_sorted(values()));
    CHECK(window.items().find(head)->value == "ascending");
  }
}

TEST_CASE("kernels: names sort from A, and the command line says so") {
  KernelsWindow window;
  REQUIRE(window.click("main/kernels/table/column/name"));
  CHECK(std::ranges::is_sorted(window.rows(), {}, &profiler::BreakdownRow::name));
  CHECK(window.twin().find("--sort name") != std::string::npos);
}

TEST_CASE("kernels: the roof has a column only where a machine was measured") {
  KernelsWindow window;
  REQUIRE(window.workbench().run()->machine() == nullptr);
  CHECK_FALSE(window.has("main/kernels/table/column/roof"));
}

TEST_CASE("kernels: a row of each kind selects what it stands for") {
  KernelsWindow window;
  const auto subject_by = [&](const char* by) {
    window.click(std::string("main/kernels/by/") + by);
    // Time that no call has selects nothing.
    const auto call = std::ranges::find(window.rows(), true, &profiler::BreakdownRow::is_call);
    window.click("main/kernels/table/row/" + std::to_string(call - window.rows().begin()) + "/");
    return window.workbench().selection().subject;
  };
  CHECK(subject_by("kernel") == Subject::kKernel);
  CHECK(window.workbench().selected_name().starts_with("kernel:"));
  CHECK(subject_by("node") == Subject::kNode);
  CHECK(subject_by("call") == Subject::kCall);
  CHECK(subject_by("op") == Subject::kNode);
}

TEST_CASE("kernels: what is selected elsewhere is chosen here, and scrolled to") {
  KernelsWindow window;
  const std::size_t last = window.rows().size() - 3;
  const std::string name = window.rows()[last].name;
  const std::string path = "main/kernels/table/row/" + std::to_string(last) + "/";
  const PlanView& plan = *window.workbench().run()->plan();
  const std::uint32_t call = first_call_of(plan, window.rows()[last], profiler::GroupBy::kNode);
  REQUIRE(call != kNoRow);
  window.workbench().select(select_call(*window.workbench().links(), {}, call));
  window.step(3);
  REQUIRE(window.has(path));
  CHECK(window.items().find(path)->value == "chosen");
  CHECK_FALSE(window.items().find(path)->seen.empty());
}

TEST_CASE("kernels: Home, End and pages") {
  KernelsWindow window;
  window.click("main/kernels/table/row/0/");
  const auto chosen = [&] { return window.kernels().chosen_row().value(); };
  window.key("PageDown");
  const std::size_t page = chosen();
  CHECK(page > 5);
  window.key("PageUp");
  CHECK(chosen() == 0);
  window.key("Down");
  window.key("Down");
  CHECK(chosen() == 2);
  window.key("Home");
  CHECK(chosen() == 0);
}

TEST_CASE("kernels: / goes to the filter, Escape out of it, and the expression is the twin's") {
  KernelsWindow window;
  window.type("/");
  CHECK(window.app().memory().focus == "main/kernels/filter");
  window.type("op=='Gelu'");
  window.key("Esc");
  CHECK(window.app().memory().focus.empty());
  CHECK(window.workbench().state<CallQuery>().filter == "op=='Gelu'");
  CHECK(window.twin().find("Gelu") != std::string::npos);
}

TEST_CASE("kernels: another run beside has its milliseconds, and how much more they are") {
  KernelsWindow window;
  window.workbench().open(test::image_run().folder());
  window.workbench().activate(0);
  window.step(2);
  CHECK_FALSE(window.has("main/kernels/table/column/other_ms"));
  REQUIRE(window.click("main/kernels/by/phase"));
  REQUIRE(window.click("main/kernels/beside"));
  REQUIRE(window.click("main/kernels/beside/menu/1"));
  window.step(2);
  REQUIRE(window.has("main/kernels/table/column/other_ms"));
  bool found = false;
  for (std::size_t i = 0; i < window.rows().size(); ++i) {
    const std::string row = "main/kernels/table/row/" + std::to_string(i) + "/";
    if (!window.has(row + "other_ms")) continue;
    found = true;
    CHECK(window.number(row + "more_ms") ==
          doctest::Approx(window.number(row + "other_ms") - window.number(row + "ms")));
  }
  CHECK(found);
  window.workbench().close(1);
  window.step(2);
  CHECK_FALSE(window.has("main/kernels/table/column/other_ms"));
}

TEST_CASE("kernels: a command takes one open run after the other beside, and then none") {
  KernelsWindow window;
  window.workbench().open(test::image_run().folder());
  window.workbench().open(test::branched_run().folder());
  window.workbench().activate(1);
  std::vector<const RunData*> besides;
  for (int i = 0; i < 4; ++i) {
    window.workbench().request("kernels.beside");
    window.step(2);
    besides.push_back(run_beside(window.workbench()));
  }
  const RunData* first = &window.workbench().source(0);
  const RunData* last = &window.workbench().source(2);
  CHECK(besides == std::vector<const RunData*>{first, last, nullptr, first});
}

TEST_CASE(
    "kernels: every row can be walked to, also what is no call and what only the other run has") {
  KernelsWindow window;
  window.workbench().open(test::image_run().folder());
  window.workbench().activate(0);
  window.workbench().request("kernels.beside");
  window.step(2);
  REQUIRE(window.click("main/kernels/by/op"));
  const std::size_t own = window.rows().size();
  const std::size_t count = window.kernels().row_count();
  REQUIRE(count > own);
  window.key("Home");
  for (std::size_t i = 1; i < count; ++i) {
    window.key("Down");
    CHECK(window.kernels().chosen_row() == i);
  }
  window.step();
  const std::string row = "main/kernels/table/row/" + std::to_string(count - 1) + "/";
  CHECK(window.has(row + "other_ms"));
  CHECK_FALSE(window.has(row + "ms"));
  CHECK(window.number(row + "more_ms") == window.number(row + "other_ms"));
  CHECK(window.workbench().notice.text.ends_with(" alone"));
  const CopiedTable copied = panel_named("kernels")->table(window.workbench());
  REQUIRE(copied.rows.size() == count);
  CHECK(copied.rows.back()[1].empty());
  CHECK_FALSE(copied.rows.back()[2].empty());
}

TEST_CASE("kernels: what the filter drops of this run is not said to be the other's alone") {
  KernelsWindow window;
  window.workbench().open(test::image_run().folder());
  window.workbench().activate(0);
  window.workbench().request("kernels.beside");
  window.step(2);
  REQUIRE(window.click("main/kernels/by/op"));
  const KernelsState& state = window.kernels();
  // An op that takes another time in the other run, and what leaves the other's row alone.
  std::string op;
  std::string filter;
  for (const profiler::BreakdownRow& row : window.rows()) {
    const auto other = state.other_row.find(row.name);
    if (!row.is_call || other == state.other_row.end()) continue;
    const double own_ms = state.rows.table.ms(row.ns);
    const profiler::Breakdown& others = state.other_rows.table;
    const double other_ms = others.ms(others.rows[other->second].ns);
    if (std::abs(own_ms - other_ms) < 0.1 * own_ms) continue;
    op = row.name;
    const double between = 0.5 * (own_ms + other_ms);
    filter = fmt::format("op=={} && ms{}{}", op, own_ms < other_ms ? ">" : "<", between);
  }
  REQUIRE_FALSE(op.empty());
  REQUIRE(window.click("main/kernels/filter"));
  window.type(filter);
  REQUIRE(state.other_row.contains(op));  // the filter leaves it there
  for (std::size_t i = 0; i < state.row_count(); ++i) CHECK(state.row(i).name != op);
}

TEST_CASE("kernels: the menu of runs names the one beside, or says that it has no profile") {
  KernelsWindow window;
  window.workbench().open(test::image_run().folder());
  window.workbench().open(test::plain_run().folder());
  window.workbench().activate(0);
  window.step(2);
  CHECK(window.label("main/kernels/beside") == "beside ▼");
  window.workbench().request("kernels.beside");
  window.step(2);
  const std::string name = window.workbench().source(1).name();
  CHECK(window.label("main/kernels/beside") == "beside " + name + " ▼");
  CHECK(window.workbench().notice.text == name + " is beside");
  REQUIRE(window.click("main/kernels/beside"));
  REQUIRE(window.click("main/kernels/beside/menu/2"));
  window.step(2);
  CHECK(window.label("main/kernels/beside").starts_with("no profile: "));
  CHECK(window.workbench().notice.text.find("has no profile") != std::string::npos);
  CHECK_FALSE(window.has("main/kernels/table/column/other_ms"));
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("kernels: a run beside that grows is shown as it is") {
  const trainscope::test::TemporaryFolder folder;
  const std::filesystem::path copy = folder / "run";
  std::filesystem::copy(test::text_run().folder(), copy, std::filesystem::copy_options::recursive);
  const std::size_t calls = RunReader::open(copy).plan().value().view().calls.size();
  test::write_profile(copy, test::steps_of(calls, 1));
  KernelsWindow window;
  window.workbench().open(copy);
  window.workbench().activate(0);
  window.workbench().request("kernels.beside");
  window.step(2);
  CHECK(window.kernels().other_rows.table.steps == 1);
  test::write_profile(copy, test::steps_of(calls, 3));
  REQUIRE(window.workbench().refresh());
  window.step(2);
  CHECK(window.kernels().other_rows.table.steps == 3);
}

TEST_CASE("kernels: copied rows are those of the table, with full digits") {
  KernelsWindow window;
  const CopiedTable copied = panel_named("kernels")->table(window.workbench());
  REQUIRE(copied.rows.size() == window.rows().size());
  CHECK(copied.head.size() == window.kernels().columns.size() + 1);
  CHECK(copied.rows[0][0] == window.rows()[0].name);
  CHECK(std::stod(copied.rows[0][1]) ==
        doctest::Approx(window.kernels().rows.table.ms(window.rows()[0].ns)).epsilon(1e-8));
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
