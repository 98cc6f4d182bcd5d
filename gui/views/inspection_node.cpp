// A node: what it is, where it comes from, what it reads and writes, which kernels run it and how
// fast.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "gui/views/inspection_history.h"
#include "gui/views/inspection_rows.h"
#include "gui/views/inspection_stage.h"
#include "profiler/advise/reasons.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

// Below a heading: names and shapes are long.
void add_values(InspectionBuilder& rows, std::string_view heading,
                std::span<const std::uint32_t> values) {
  if (values.empty()) return;
  rows.heading(std::string(heading));
  for (const std::uint32_t value : values) rows.value_link({}, rows.links->plan().values[value]);
}

void add_provenance(InspectionBuilder& rows, const PlanNode& node) {
  const PlanView& plan = rows.links->plan();
  rows.heading("Where it comes from");
  std::vector<std::string_view> sources;
  for (const TextId source : rows_of(plan.names, node.sources)) {
    sources.push_back(plan.text(source));
  }
  add_sources(rows, sources);
  if (node.backward_of != 0) {
    const std::uint32_t forward = rows.links->node_of_serial(node.backward_of);
    if (forward != kNoRow) rows.node_link("gradient of", plan.nodes[forward]);
  }
  if (node.rematerialized_of != kNoRow) {
    rows.node_link("computes again", plan.nodes[node.rematerialized_of]);
  }
}

// The plan does not have them.
void add_attributes(InspectionBuilder& rows, const std::optional<StageNode>& at) {
  if (!at) {
    rows.text("attributes", "not known: no stage that can be read has the node");
    return;
  }
  const std::span<const StageFacts> stages = rows.run.stages();
  if (at->stage + 1 < stages.size()) rows.text("in the stage", stages[at->stage].label);
  const std::string attributes = attributes_text(at->node->attributes);
  rows.text("attributes", attributes.empty() ? "none" : attributes);
}

// Where the calls of a node are printed, by one of them.
std::string calls_fact(std::uint32_t call) {
  return fmt::format("inspect {{run}} --calls --at {} | /", call);
}

void add_kernels(InspectionBuilder& rows, std::span<const std::uint32_t> calls) {
  const PlanView& plan = rows.links->plan();
  rows.heading("Kernel");
  std::vector<TextId> seen;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const PlanCall& call = plan.calls[calls[i]];
    if (std::ranges::find(seen, call.kernel) != seen.end()) continue;
    seen.push_back(call.kernel);
    const std::string kernel(profiler::kernel_of(plan, call));
    rows.link("chosen", kernel, std::string(plan.text(call.dtype)), "kernel:" + kernel);
    for (const PlanOtherKernel& other : rows_of(plan.other_kernels, call.other_kernels)) {
      rows.text("not", fmt::format("{}: {}", plan.text(other.kernel), plan.text(other.reason)));
    }
    if (call.workspace_bytes > 0) {
      rows.number(InspectionKind::kWorkspace, "workspace",
                  static_cast<double>(call.workspace_bytes),
                  calls_fact(calls[0]) + fmt::format("calls/{}/workspace_bytes", i));
    }
  }
}

// What limits a call, and what keeps it from there.
void add_reason(InspectionBuilder& rows, const PlanCall& call, const profiler::BreakdownRow& row) {
  const Machine* machine = rows.run.machine();
  if (machine == nullptr) {
    rows.text(
        "limited by",
        "not known: nobody measured the machine; `trainscope doctor --roofs --out FILE` does so, "
        "for --machine FILE");
    return;
  }
  const double seconds = static_cast<double>(row.ns) / 1e9 / static_cast<double>(row.runs);
  const profiler::RoofReason reason =
      profiler::roof_reason(*machine, rows.links->plan(), call, seconds);
  rows.text("limited by", reason.bound);
  rows.text("because", reason.reason);
}

// Of its calls alone: an ONNX node's row may have those of its gradient too.
void add_times(InspectionBuilder& rows, std::span<const std::uint32_t> calls) {
  const CallTable* of_calls = rows.run.calls_by(profiler::GroupBy::kCall);
  if (of_calls == nullptr || of_calls->table.steps == 0) return;
  const PlanView& plan = rows.links->plan();
  const profiler::Breakdown& table = of_calls->table;
  rows.heading("Time");
  for (const std::uint32_t id : calls) {
    const profiler::BreakdownRow* row =
        of_calls->find(profiler::group_name(plan, id, profiler::GroupBy::kCall));
    if (row == nullptr) continue;
    const std::string fact = fmt::format("query {{run}} 'call=={}' --by call | /rows/0/", id);
    rows.number(InspectionKind::kCall, "call", id,
                fmt::format("inspect {{run}} --calls | /calls/{}/id", id));
    rows.number(InspectionKind::kTime, "of a step", table.ms(row->ns), fact + "ms");
    rows.number(InspectionKind::kShare, "share", table.share(*row), fact + "share");
    if (row->flops > 0.0) {
      rows.number(InspectionKind::kGigaflops, "does", row->gflops(), fact + "gflops");
    }
    rows.number(InspectionKind::kGigabytes, "moves", row->gbs(), fact + "gbs");
    if (row->roof_ns > 0.0) {
      rows.number(InspectionKind::kRoof, "of its roof", row->roof(), fact + "roof");
    }
    add_reason(rows, plan.calls[id], *row);
  }
}

// Of all its calls in a step.
void add_work(InspectionBuilder& rows, std::span<const std::uint32_t> calls) {
  const PlanView& plan = rows.links->plan();
  double flops = 0.0;
  double read = 0.0;
  double written = 0.0;
  for (const std::uint32_t call : calls) {
    flops += static_cast<double>(plan.calls[call].flops);
    read += static_cast<double>(plan.calls[call].bytes_read);
    written += static_cast<double>(plan.calls[call].bytes_written);
  }
  const std::string fact = calls_fact(calls[0]);
  rows.number(InspectionKind::kFlops, "FLOPs", flops, fact + "flops");
  rows.number(InspectionKind::kBytesRead, "reads", read, fact + "bytes_read");
  rows.number(InspectionKind::kBytesWritten, "writes", written, fact + "bytes_written");
  add_times(rows, calls);
  add_kernels(rows, calls);
}

}  // namespace

void inspect_node(InspectionBuilder& rows, const Selection& selection) {
  const PlanView& plan = rows.links->plan();
  const std::uint32_t id = rows.links->node_of_serial(selection.node);
  const PlanNode& node = plan.nodes[id];
  const std::span<const std::uint32_t> calls = rows.links->calls_of_node(id);
  rows.text("op", std::string(plan.text(node.op)));
  rows.text("phase", std::string(name_of(node.phase)));
  rows.text("made by", std::string(plan.text(node.pass)));
  const auto at = find_stage_node(rows.run, selection.stage, node.serial);
  add_attributes(rows, at);
  if (calls.empty()) {
    const bool is_view = std::ranges::any_of(rows.links->outputs_of_node(id), [&](auto value) {
      return plan.values[value].view_of != kNoRow;
    });
    rows.note(is_view ? "No kernel runs: its result has the bytes of its input."
                      : "No call of the step computes it.");
  } else {
    add_work(rows, calls);
  }
  add_values(rows, "Reads", rows.links->inputs_of_node(id));
  add_values(rows, "Writes", rows.links->outputs_of_node(id));
  if (at) add_stage_operands(rows, *at);
  add_provenance(rows, node);
  add_history(rows, "What the passes did to it", node.serial, rows.run.stages().size());
}

}  // namespace trainscope::gui
