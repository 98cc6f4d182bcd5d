// Points from a breakdown's rows, roofs from the machine's rates.
#include "gui/views/roofline_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/plan_classes.h"

namespace trainscope::gui {

std::optional<std::size_t> Roofline::point_named(const std::string& name) const {
  const auto found = place.find(name);
  return found == place.end() ? std::nullopt : std::optional(found->second);
}

Roofline roofline_of(const KernelRows& rows, profiler::GroupBy by, const PlanView& plan,
                     const Machine* machine) {
  Roofline result;
  const std::unordered_map<std::string, std::uint32_t> first = first_calls(plan, by);
  for (std::size_t i = 0; i < rows.table.rows.size(); ++i) {
    const profiler::BreakdownRow& row = rows.table.rows[i];
    if (!row.is_call || row.flops <= 0.0 || row.bytes <= 0.0 || row.ns <= 0) continue;
    const std::uint32_t call = first.at(row.name);
    result.place.emplace(row.name, result.points.size());
    result.points.push_back({.row = i,
                             .name = row.name,
                             .call = call,
                             .op_class = class_of(plan, plan.calls[call]),
                             .intensity = row.intensity(),
                             .gflops = row.gflops(),
                             .share = rows.table.share(row),
                             .roof = row.roof()});
  }
  result.by_share.resize(result.points.size());
  std::iota(result.by_share.begin(), result.by_share.end(), std::size_t{0});
  std::ranges::stable_sort(result.by_share, std::ranges::greater(),
                           [&](std::size_t i) { return result.points[i].share; });
  if (machine != nullptr) result.roofs = profiler::roofs_of(*machine, plan.facts().threads);
  return result;
}

RooflineAxes axes_around(const Roofline& own, const Roofline& beside) {
  std::vector<double> x;
  std::vector<double> y;
  for (const Roofline* each : {&own, &beside}) {
    for (const RooflinePoint& point : each->points) {
      x.push_back(point.intensity);
      y.push_back(point.gflops);
    }
    for (const Roof& roof : each->roofs) {
      y.push_back(roof.gflops);
      if (roof.gbs > 0.0) x.push_back(roof.gflops / roof.gbs);  // its ridge
    }
  }
  return {.intensity = axis_around(x, AxisScale::kLogarithmic),
          .gflops = axis_around(y, AxisScale::kLogarithmic)};
}

}  // namespace trainscope::gui
