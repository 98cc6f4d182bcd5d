// Points from a breakdown's rows, roofs from the machine's rates.
#include "gui/views/roofline_points.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainscope::gui {
namespace {

double of_threads(const Rate& rate, std::uint32_t threads) {
  return std::min(rate.all, rate.one * static_cast<double>(std::max(1U, threads)));
}

std::vector<Roof> roofs_of(const Machine& machine, std::uint32_t threads) {
  std::vector<Roof> roofs;
  double highest = 0.0;
  for (const auto& [dtype, rate] : machine.flops_per_second) {
    const double gflops = of_threads(rate, threads) / 1e9;
    roofs.push_back({.name = std::string(name_of(dtype)), .gflops = gflops});
    highest = std::max(highest, gflops);
  }
  for (const MemoryLevel& level : machine.levels) {
    roofs.push_back(
        {.name = level.name, .gbs = of_threads(level.read, threads) / 1e9, .gflops = highest});
  }
  return roofs;
}

}  // namespace

Roofline roofline_of(const KernelRows& rows, const Machine* machine, std::uint32_t threads) {
  Roofline result;
  for (std::size_t i = 0; i < rows.table.rows.size(); ++i) {
    const profiler::BreakdownRow& row = rows.table.rows[i];
    if (!row.is_call || row.flops <= 0.0 || row.bytes <= 0.0 || row.ns <= 0) continue;
    result.points.push_back({.row = i,
                             .name = row.name,
                             .intensity = row.intensity(),
                             .gflops = row.gflops(),
                             .share = rows.table.share(row),
                             .roof = row.roof()});
  }
  std::ranges::stable_sort(result.points, std::ranges::greater(), &RooflinePoint::share);
  if (machine != nullptr) result.roofs = roofs_of(*machine, threads);
  std::vector<double> x;
  std::vector<double> y;
  for (const RooflinePoint& point : result.points) {
    x.push_back(point.intensity);
    y.push_back(point.gflops);
  }
  for (const Roof& roof : result.roofs) {
    y.push_back(roof.gflops);
    if (roof.gbs > 0.0) x.push_back(roof.gflops / roof.gbs);  // its ridge
  }
  result.intensity = axis_around(x, AxisScale::kLogarithmic);
  result.gflops = axis_around(y, AxisScale::kLogarithmic);
  return result;
}

}  // namespace trainscope::gui
