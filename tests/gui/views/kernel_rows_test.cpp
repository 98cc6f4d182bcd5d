// Rows of the time's tables, their selections, rooflines, axes, and what the palette finds.
#include "gui/views/kernel_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "engine/machine/machine_file.h"
#include "gui/views/axis.h"
#include "gui/views/inspection.h"
#include "gui/views/palette_index.h"
#include "gui/views/roofline_points.h"
#include "profiler/advise/reasons.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

const test::MadeRun& made() {
  static const test::MadeRun run("rows", *test::compiled("gpt2", test::kSmallText));
  return run;
}

struct Opened {
  std::unique_ptr<RunData> run = RunData::open(made().folder());
  PlanLinks links{*run->plan()};
};

TEST_CASE("kernel_rows: sorted, the other way round, filtered, and a fault for a wrong filter") {
  Opened opened;
  const profiler::StepTimes& times = *opened.run->times();
  const PlanView& plan = *opened.run->plan();
  const KernelWishes by_ms{.by = profiler::GroupBy::kOp};
  const KernelRows rows = kernel_rows(times, plan, nullptr, by_ms);
  REQUIRE(rows.table.rows.size() > 4);
  CHECK(
      std::ranges::is_sorted(rows.table.rows, std::ranges::greater(), &profiler::BreakdownRow::ns));
  KernelWishes wishes = by_ms;
  wishes.descending = false;
  const KernelRows turned = kernel_rows(times, plan, nullptr, wishes);
  CHECK(std::ranges::is_sorted(turned.table.rows, {}, &profiler::BreakdownRow::ns));
  CHECK(turned.printed_position(0, wishes) == turned.table.rows.size() - 1);
  wishes.filter = "phase==update";
  CHECK(kernel_rows(times, plan, nullptr, wishes).table.rows.size() < rows.table.rows.size());
  wishes.filter = "phase==";
  CHECK_FALSE(kernel_rows(times, plan, nullptr, wishes).fault.empty());
}

TEST_CASE("kernel_rows: each row is found by the call that is selected by it") {
  Opened opened;
  const PlanView& plan = *opened.run->plan();
  for (const auto by : {profiler::GroupBy::kNode, profiler::GroupBy::kOp,
                        profiler::GroupBy::kKernel, profiler::GroupBy::kCall}) {
    const KernelRows rows = kernel_rows(*opened.run->times(), plan, nullptr, {.by = by});
    for (std::size_t i = 0; i < rows.table.rows.size(); ++i) {
      const std::uint32_t call = first_call_of(plan, rows.table.rows[i], by);
      if (!rows.table.rows[i].is_call) {
        CHECK(call == kNoRow);
        continue;
      }
      REQUIRE(call != kNoRow);
      const Selection selection = selection_of_row(opened.links, {}, call, by);
      CHECK(selection.subject != Subject::kNothing);
      CHECK(profiler::group_name(plan, call, by) == rows.table.rows[i].name);
      CHECK(profiler::group_name(plan, selection.call, by) == rows.table.rows[i].name);
    }
  }
}

TEST_CASE("inspection_of: a node's links lead to the tensors that its calls read and write") {
  Opened opened;
  const PlanView& plan = *opened.run->plan();
  const Selection selection = select_call(opened.links, {}, 3);
  const Inspection shown = inspection_of(selection, *opened.run, &opened.links);
  CHECK(shown.what == "node");
  std::size_t links = 0;
  for (const InspectionRow& row : shown.rows) links += row.target.starts_with("value:") ? 1 : 0;
  CHECK(links >= 1);
  const PlanCall& call = plan.calls[3];
  const auto has = [&](std::string_view label, double number) {
    return std::ranges::any_of(shown.rows, [&](const InspectionRow& row) {
      return row.label == label && row.number == number;
    });
  };
  CHECK(has("reads", static_cast<double>(call.bytes_read)));
  CHECK(has("writes", static_cast<double>(call.bytes_written)));
  CHECK(inspection_of({}, *opened.run, &opened.links).what.empty());
  CHECK(inspection_of(selection, *opened.run, nullptr).what.empty());
}

TEST_CASE(
    "inspection_of: what limits a node, and why it is no faster, where its machine is known") {
  const auto limit_of = [](RunData& run) {
    const PlanLinks links(*run.plan());
    std::string text;
    for (const InspectionRow& row : inspection_of(select_call(links, {}, 3), run, &links).rows) {
      if (row.label == "limited by" || row.label == "because") text += row.text + ";";
    }
    return text;
  };
  Opened opened;
  const std::string unknown = limit_of(*opened.run);
  CHECK(unknown.starts_with("not known: nobody measured the machine"));
  CHECK(unknown.find("trainscope doctor --roofs --out FILE") != std::string::npos);
  const test::MadeRun measured("measured", *test::compiled("gpt2", test::kSmallText), 3,
                               machine_json(test::small_machine()));
  const auto run = RunData::open(measured.folder());
  INFO(run->message(Topic::kMachine).text);
  REQUIRE(run->machine() != nullptr);
  const PlanView& plan = *run->plan();
  const profiler::CallTime& time = run->times()->calls[3];
  const double seconds = 1e-9 * static_cast<double>(time.sum()) / static_cast<double>(time.runs);
  const profiler::RoofReason reason =
      profiler::roof_reason(*run->machine(), plan, plan.calls[3], seconds);
  CHECK(limit_of(*run) == reason.bound + ";" + reason.reason + ";");
}

TEST_CASE("inspection_of: tensors, buffers and kernels") {
  Opened opened;
  const PlanView& plan = *opened.run->plan();
  for (std::uint32_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].serial == 0) continue;
    const Selection selection = select_value(opened.links, {}, plan.values[i].serial);
    const Inspection shown = inspection_of(selection, *opened.run, &opened.links);
    CHECK(shown.what == "tensor");
    CHECK(shown.name == plan.text(plan.values[i].name));
  }
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const Inspection shown =
        inspection_of(select_buffer(opened.links, {}, i), *opened.run, &opened.links);
    CHECK(shown.what == "buffer");
  }
  const std::string kernel(profiler::kernel_of(plan, plan.calls[0]));
  const Inspection shown =
      inspection_of(select_kernel(opened.links, {}, kernel), *opened.run, &opened.links);
  CHECK(shown.what == "kernel");
  CHECK(shown.name == kernel);
}

TEST_CASE("roofline_of: points are rows with FLOPs and bytes; a machine brings its roofs") {
  Opened opened;
  const PlanView& plan = *opened.run->plan();
  constexpr auto kBy = profiler::GroupBy::kNode;
  const KernelRows rows = kernel_rows(*opened.run->times(), plan, nullptr, {});
  const Roofline plain = roofline_of(rows, kBy, plan, nullptr);
  REQUIRE_FALSE(plain.points.empty());
  CHECK(plain.roofs.empty());
  const RooflineAxes axes = axes_around(plain, {});
  for (std::size_t i = 0; i < plain.points.size(); ++i) {
    const RooflinePoint& point = plain.points[i];
    CHECK(point.intensity >= axes.intensity.low);
    CHECK(point.intensity <= axes.intensity.high);
    CHECK(point.gflops >= axes.gflops.low);
    CHECK(point.gflops <= axes.gflops.high);
    CHECK(plain.point_named(point.name) == i);
    CHECK(point.call == first_call_of(plan, rows.table.rows[point.row], kBy));
  }
  CHECK_FALSE(plain.point_named("nothing has this name"));
  CHECK(std::ranges::is_sorted(plain.by_share, std::ranges::greater(),
                               [&](std::size_t i) { return plain.points[i].share; }));
  const Machine machine = test::small_machine();
  REQUIRE(plan.facts().threads == 1);
  const Roofline roofed = roofline_of(rows, kBy, plan, &machine);
  REQUIRE(roofed.roofs.size() == 2);
  CHECK(roofed.roofs[0].gflops == doctest::Approx(10.0));  // of one core
  CHECK(roofed.roofs[1].gbs == doctest::Approx(5.0));
  PlanFacts of_four = plan.facts();
  of_four.threads = 4;
  PlanView four = plan;
  four.facts_row = std::span(&of_four, 1);
  const std::vector<Roof> most = roofline_of(rows, kBy, four, &machine).roofs;
  CHECK(most[0].gflops == doctest::Approx(15.0));  // two cores reach no more
  CHECK(most[1].gbs == doctest::Approx(8.0));
  CHECK(axes_around(plain, roofed).gflops.high >= 10.0);
}

TEST_CASE("axes: places along them, ticks of 1, 2, 5 and powers of ten") {
  const PlotAxis linear{.low = 2.0, .high = 12.0};
  CHECK(linear.share_of(7.0) == doctest::Approx(0.5));
  CHECK(ticks_of({.low = 0.0, .high = 10.0}, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  const PlotAxis logarithmic{.low = 0.01, .high = 100.0, .scale = AxisScale::kLogarithmic};
  CHECK(logarithmic.share_of(1.0) == doctest::Approx(0.5));
  CHECK(ticks_of(logarithmic, 10).size() == 5);
  for (const PlotAxis& axis : {linear, logarithmic}) {
    CHECK(axis.value_at(axis.share_of(3.0)) == doctest::Approx(3.0));
  }
  CHECK(axis_around({}).high > axis_around({}).low);
  CHECK(axis_around({3.0, 3.0}).high > 3.0);
  CHECK(axis_around({std::nan(""), 1.0, 2.0}).low < 1.0);
  CHECK(axis_around({0.02, 30.0}, AxisScale::kLogarithmic).low == doctest::Approx(0.01));
}

TEST_CASE("fuzzy_score: letters in order; words and runs count more; none where one is missing") {
  CHECK(fuzzy_score("mm", "MatMul") > 0);
  CHECK(fuzzy_score("xyz", "MatMul") == 0);
  CHECK(fuzzy_score("fc", "/h.0/mlp/c_fc") > fuzzy_score("fc", "effacing"));
  CHECK(fuzzy_score("theme", "Next theme") > fuzzy_score("theme", "the memory"));
  CHECK(fuzzy_score("next theme", "Next theme") > 0);
  CHECK(fuzzy_score("Gelu", "Gelu_1") > fuzzy_score("Gelu", "gelu"));
  CHECK(fuzzy_score("gelu", "gelu") > fuzzy_score("gelu", "Gelu_1"));
}

TEST_CASE("palette: shapes, dtypes, patterns of two ops, names") {
  CHECK(matches_shape("[*,768]", "f32[8,768]"));
  CHECK(matches_shape("[8, *]", "f32[8,768]"));
  CHECK_FALSE(matches_shape("[*,768]", "f32[8,64,768]"));
  CHECK_FALSE(matches_shape("[768]", "f32[8]"));
  Opened opened;
  PaletteIndex index({{.kind = FindKind::kCommand, .name = "Next theme", .target = "view.theme"}});
  index.add_plan(opened.links);
  CHECK(index.find("", 50).size() == 1);  // commands alone
  const auto is = [&](const Found& found, FindKind kind) {
    return index.entries()[found.entry].kind == kind;
  };
  const std::vector<Found> shapes = index.find("[*,16]", 500);
  REQUIRE_FALSE(shapes.empty());
  for (const Found& found : shapes) {
    CHECK(is(found, FindKind::kValue));
    CHECK(matches_shape("[*,16]", index.entries()[found.entry].detail));
  }
  const std::vector<Found> floats = index.find("f32", 5000);
  CHECK(floats.size() > shapes.size());
  const std::vector<Found> pattern = index.find("LayerNormalization->*", 100);
  REQUIRE_FALSE(pattern.empty());
  for (const Found& found : pattern) {
    CHECK(is(found, FindKind::kNode));
    CHECK(index.entries()[found.entry].detail == "LayerNormalization");
  }
  CHECK(index.find("LayerNormalization->Conv", 100).empty());
  CHECK(index.find("nothing has this name", 10).empty());
  CHECK(index.entries()[index.find("next theme", 1).at(0).entry].target == "view.theme");
}

}  // namespace
}  // namespace trainscope::gui
