// A kernel: how fast it is, what it needs, the nodes that it computes and the kernels that it was
// preferred to.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gui/views/inspection_rows.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

// Of all its calls in the profiled steps.
void add_kernel_times(InspectionBuilder& rows, const std::string& kernel) {
  const CallTable* kernels = rows.run.calls_by(profiler::GroupBy::kKernel);
  const profiler::BreakdownRow* row = kernels == nullptr ? nullptr : kernels->find(kernel);
  if (row == nullptr) return;
  const profiler::Breakdown& table = kernels->table;
  const std::string fact =
      fmt::format("query {{run}} --by kernel | /rows/{}/", row - table.rows.data());
  rows.number(InspectionKind::kTime, "time of a step", table.ms(row->ns), fact + "ms");
  rows.number(InspectionKind::kShare, "share", table.share(*row), fact + "share");
  rows.number(InspectionKind::kGigaflops, "does", row->gflops(), fact + "gflops");
  rows.number(InspectionKind::kGigabytes, "moves", row->gbs(), fact + "gbs");
  if (row->roof_ns > 0.0) {
    rows.number(InspectionKind::kRoof, "of its roof", row->roof(), fact + "roof");
  }
}

// Each other kernel of one of the calls once for each reason.
void add_others(InspectionBuilder& rows, std::span<const std::uint32_t> calls) {
  constexpr std::size_t kMostOthers = 12;
  const PlanView& plan = rows.links->plan();
  std::vector<PlanOtherKernel> seen;
  for (const std::uint32_t call : calls) {
    for (const PlanOtherKernel& other :
         rows_of(plan.other_kernels, plan.calls[call].other_kernels)) {
      const bool is_known = std::ranges::any_of(seen, [&](const PlanOtherKernel& each) {
        return each.kernel == other.kernel && each.reason == other.reason;
      });
      if (!is_known) seen.push_back(other);
    }
  }
  if (seen.empty()) return;
  rows.heading("Kernels that were not taken instead");
  for (std::size_t i = 0; i < std::min(seen.size(), kMostOthers); ++i) {
    rows.text("not", fmt::format("{}: {}", plan.text(seen[i].kernel), plan.text(seen[i].reason)));
  }
  if (seen.size() > kMostOthers) rows.note(fmt::format("and {} more", seen.size() - kMostOthers));
}

}  // namespace

void inspect_kernel(InspectionBuilder& rows, const std::string& kernel) {
  const PlanView& plan = rows.links->plan();
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    if (profiler::kernel_of(plan, plan.calls[i]) == kernel) calls.push_back(i);
  }
  rows.number(InspectionKind::kCallCount, "calls", static_cast<double>(calls.size()),
              fmt::format("inspect {{run}} --calls | /kernels/{}", kernel));
  const auto hungriest = std::ranges::max_element(
      calls, {}, [&](std::uint32_t call) { return plan.calls[call].workspace_bytes; });
  if (hungriest != calls.end() && plan.calls[*hungriest].workspace_bytes > 0) {
    rows.number(InspectionKind::kWorkspace, "workspace",
                static_cast<double>(plan.calls[*hungriest].workspace_bytes),
                fmt::format("inspect {{run}} --calls | /calls/{}/workspace_bytes", *hungriest));
  }
  add_kernel_times(rows, kernel);
  rows.heading("Nodes that it computes");
  rows.node_links({}, rows.nodes_of(calls));
  add_others(rows, calls);
}

}  // namespace trainscope::gui
