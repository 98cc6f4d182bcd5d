// The Roofline panel by its items: points, the list of them, the filter and the run beside.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/machine/machine_file.h"
#include "gui/panels/panels.h"
#include "gui/panels/query/roofline_state.h"
#include "tests/gui/panels/table_rows.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

// The small text model on a machine whose arithmetic is so much faster than the one of tests.
const test::MadeRun& measured_run(double faster) {
  static const auto made = [](const char* name, double factor) {
    Machine machine = test::small_machine();
    for (auto& [dtype, rate] : machine.flops_per_second) {
      rate = {.one = factor * rate.one, .all = factor * rate.all};
    }
    return std::make_unique<test::MadeRun>(name, *test::compiled("gpt2", test::kSmallText), 3,
                                           machine_json(machine));
  };
  static const auto usual = made("roofs", 1.0);
  static const auto fast = made("fast-roofs", 4.0);
  return faster == 1.0 ? *usual : *fast;
}

class RooflineWindow : public test::WindowDriver {
 public:
  explicit RooflineWindow(const std::filesystem::path& run = test::text_run().folder())
      : WindowDriver(run, {}, {.size = {1600.0F, 900.0F}}) {
    app().show_only("roofline");
    step(2);
  }
  RooflineState& roofline() { return workbench().state<RooflineState>(); }
  const std::vector<RooflinePoint>& points() { return roofline().own.roofline.points; }
  // Another run beside the first one.
  void put_beside(const std::filesystem::path& run) {
    workbench().open(run);
    workbench().activate(0);
    workbench().request("kernels.beside");
    step(2);
  }
  std::size_t marks(std::string_view prefix) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        items().below(prefix), [](const Item* item) { return item->kind == ItemKind::kMark; }));
  }
  bool says(std::string_view part) const {
    return std::ranges::any_of(items().items(), [&](const Item& item) {
      return item.label.find(part) != std::string::npos;
    });
  }
  std::string twin() { return panel_named("roofline")->twin(workbench()); }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("roofline: a point for each row with FLOPs and bytes; arrows walk by time") {
  RooflineWindow window;
  CHECK(window.marks("main/roofline/point/") == window.points().size());
  CHECK(window.points().size() > 5);
  window.key("Down");
  const std::string first = window.workbench().selected_name();
  // The node that runs first of those that stem from the point's ONNX node.
  const std::uint32_t call = window.workbench().selection().call;
  REQUIRE(call != kNoRow);
  CHECK(profiler::group_name(*window.workbench().run()->plan(), call, profiler::GroupBy::kNode) ==
        window.items().find("main/roofline/point/0")->value);
  window.key("Down");
  const std::string second = window.workbench().selected_name();
  CHECK(second != first);
  window.key("Up");
  CHECK(window.workbench().selected_name() == first);
  for (int i = 0; i < 200; ++i) window.key("Down");
  const std::string last = window.workbench().selected_name();
  window.key("Down");
  CHECK(window.workbench().selected_name() == last);
}

TEST_CASE("roofline: points by op and kernel; a click selects") {
  RooflineWindow window;
  REQUIRE(window.click("main/roofline/by/kernel"));
  REQUIRE(window.click("main/roofline/point/0"));
  CHECK(window.workbench().selection().subject == Subject::kKernel);
  REQUIRE(window.click("main/roofline/by/op"));
  CHECK(window.twin().find(" --by op --sort ms") != std::string::npos);
}

TEST_CASE("roofline: without a measured machine it says how to measure one") {
  RooflineWindow window;
  REQUIRE(window.click("main/roofline/measure"));
  CHECK(window.app().memory().clipboard.starts_with("trainscope doctor --roofs"));
}

TEST_CASE("roofline: the list has a row for each point, and its heads sort it both ways") {
  RooflineWindow window(measured_run(1.0).folder());
  const std::string rows = "main/roofline/points/row/";
  CHECK(test::rows_below(window.items(), rows) > 5);
  for (const char* name : {"gflops", "intensity", "share", "roof"}) {
    INFO(name);
    const std::string head = std::string("main/roofline/points/column/") + name;
    const auto values = [&] {
      std::vector<double> all;
      const profiler::Breakdown& table = window.roofline().own.rows.table;
      for (const RooflinePoint& point : window.points()) {
        all.push_back(profiler::column_of(table, table.rows[point.row], name));
      }
      return all;
    };
    REQUIRE(window.click(head));
    window.step();
    CHECK(std::ranges::is_sorted(values(), std::ranges::greater()));
    CHECK(window.items().find(rows + "0/" + name)->number == values().front());
    CHECK(window.twin().find(std::string("--sort ") + name) != std::string::npos);
    REQUIRE(window.click(head));
    window.step();
    CHECK(std::ranges::is_sorted(values()));
  }
  REQUIRE(window.click("main/roofline/points/column/name"));
  window.step();
  CHECK(std::ranges::is_sorted(window.points(), {}, &RooflinePoint::name));
  REQUIRE(window.click(rows + "2/"));
  CHECK(chosen_point(window.roofline(), window.workbench()) == 2);
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("roofline: the filter of Kernels is its own, and its errors point into it") {
  RooflineWindow window;
  const std::size_t all = window.points().size();
  window.type("/");
  CHECK(window.app().memory().focus == "main/roofline/filter");
  window.type("phase==backward");
  window.step();
  const PlanView& plan = *window.workbench().run()->plan();
  CHECK(window.points().size() < all);
  REQUIRE_FALSE(window.points().empty());
  CHECK(std::ranges::all_of(window.points(), [&](const RooflinePoint& point) {
    return std::ranges::any_of(plan.calls, [&](const PlanCall& call) {
      const auto id = static_cast<std::uint32_t>(&call - plan.calls.data());
      return call.phase == PlanPhase::kBackward &&
             profiler::group_name(plan, id, profiler::GroupBy::kNode) == point.name;
    });
  }));
  CHECK(window.twin().find(" phase==backward --by") != std::string::npos);
  CHECK(panel_named("kernels")->twin(window.workbench()).find(" phase==backward --by") !=
        std::string::npos);
  window.type(" && op=");
  window.step();
  const std::string fault = window.roofline().own.rows.fault;
  REQUIRE_FALSE(fault.empty());
  CHECK(window.says("The filter is not understood"));
  CHECK(window.marks("main/roofline/point/") == 0);
  window.app().show_only("kernels");
  window.step(2);
  CHECK(window.says("The filter is not understood"));
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("roofline: another run beside has rings, and a column of what it reaches") {
  RooflineWindow window;
  CHECK(window.marks("main/roofline/beside/") == 0);
  CHECK_FALSE(window.has("main/roofline/points/column/other_gflops"));
  window.put_beside(test::image_run().folder());
  const std::size_t beside = window.roofline().beside.roofline.points.size();
  CHECK(beside > 3);
  CHECK(window.marks("main/roofline/beside/") == beside);
  CHECK(window.says(window.workbench().source(0).name()));
  CHECK(window.says(window.workbench().source(1).name()));
  CHECK(window.has("main/roofline/points/column/other_gflops"));
  // What only the other run has selects nothing here.
  const std::string before = window.workbench().selected_name();
  for (std::size_t i = 0; i < beside; ++i) {
    const RooflinePoint& point = window.roofline().beside.roofline.points[i];
    if (window.roofline().own.roofline.point_named(point.name)) continue;
    window.click("main/roofline/beside/" + std::to_string(i));
    break;
  }
  CHECK(panel_named("roofline")->table(window.workbench()).head.back() == "other_roof");
  CHECK(faults_of(window.items()).empty());
  window.workbench().close(1);
  window.step(2);
  CHECK(window.marks("main/roofline/beside/") == 0);
}

TEST_CASE("roofline: the same run beside has the same points, each beside its own") {
  RooflineWindow window(measured_run(1.0).folder());
  window.put_beside(measured_run(4.0).folder());
  REQUIRE(window.roofline().beside.roofline.points.size() == window.points().size());
  std::size_t rates = 0;
  for (const Item* item : window.items().below("main/roofline/points/row/")) {
    if (!item->path.ends_with("/other_gflops")) continue;
    const std::string own = item->path.substr(0, item->path.rfind('/')) + "/gflops";
    CHECK(item->number == window.items().find(own)->number);
    ++rates;
  }
  CHECK(rates > 5);
  for (std::size_t i = 0; i < window.points().size(); ++i) {
    const std::string number = std::to_string(i);
    CHECK(window.items().find("main/roofline/beside/" + number)->rect.center() ==
          window.items().find("main/roofline/point/" + number)->rect.center());
  }
}

TEST_CASE("roofline: roofs of the other machine are drawn where they are others") {
  RooflineWindow window(measured_run(1.0).folder());
  const auto labels = [&](std::string_view unit) {
    return std::ranges::count_if(window.items().below("main/roofline/roof"), [&](const Item* item) {
      return item->kind == ItemKind::kNumber && item->label.ends_with(unit);
    });
  };
  const auto alone = labels("GFLOP/s");
  const auto levels = labels("GB/s");
  CHECK(alone > 0);
  CHECK(levels > 0);
  window.put_beside(measured_run(1.0).folder());
  CHECK(labels("GFLOP/s") == alone);
  window.workbench().close(1);
  window.put_beside(measured_run(4.0).folder());
  CHECK(labels("GFLOP/s") == 2 * alone);
  CHECK(labels("GB/s") == levels);  // that roof is the same
  CHECK(faults_of(window.items()).empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
