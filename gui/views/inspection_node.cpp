// A node: what it is, where it comes from, what it reads and writes, which kernels run it and how
// fast.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/graph.h"
#include "gui/views/graph/node_values.h"
#include "gui/views/inspection_rows.h"
#include "profiler/advise/reasons.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

const Node* node_of(const Graph* graph, std::uint32_t serial) {
  if (graph == nullptr) return nullptr;
  for (const NodeId id : graph->order()) {
    const Node& node = graph->node(id);
    if (static_cast<std::uint32_t>(node.serial) == serial) return &node;
  }
  return nullptr;
}

// Operands of all of its calls, each value once, below a heading: names and shapes are long.
void add_operands(InspectionBuilder& rows, std::string_view heading,
                  std::span<const std::uint32_t> calls, RowRange PlanCall::*which) {
  const PlanView& plan = rows.links->plan();
  std::vector<std::uint32_t> seen;
  for (const std::uint32_t call : calls) {
    for (const PlanOperand& operand : rows_of(plan.operands, plan.calls[call].*which)) {
      if (operand.value == kNoRow || std::ranges::find(seen, operand.value) != seen.end()) continue;
      if (seen.empty()) rows.heading(std::string(heading));
      seen.push_back(operand.value);
      rows.value_link({}, plan.values[operand.value]);
    }
  }
}

void add_provenance(InspectionBuilder& rows, const PlanNode& node) {
  const PlanView& plan = rows.links->plan();
  rows.heading("Where it comes from");
  std::string label = "stems from";
  for (const TextId source : rows_of(plan.names, node.sources)) {
    rows.text(std::exchange(label, std::string()), std::string(plan.text(source)));
  }
  if (node.backward_of != 0) {
    const std::uint32_t forward = rows.links->node_of_serial(node.backward_of);
    if (forward != kNoRow) rows.node_link("gradient of", plan.nodes[forward]);
  }
  if (node.rematerialized_of != kNoRow) {
    rows.node_link("computes again", plan.nodes[node.rematerialized_of]);
  }
  const StageHistory* history = rows.run.history();
  if (history == nullptr) return;
  // What became of its first source, to the last stage.
  const std::span<const TextId> sources = rows_of(plan.names, node.sources);
  if (sources.empty()) return;
  const Fate* fate = rows.run.node_fate(plan.text(sources[0]));
  if (fate == nullptr) return;
  rows.note(fmt::format("{}: {}", fate->thing.name, reason_of(history->history(), *fate)));
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
      rows.number(InspectionKind::kBytes, "workspace", static_cast<double>(call.workspace_bytes),
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
  const profiler::StepTimes* times = rows.run.times();
  if (times == nullptr || times->steps.empty()) return;
  const PlanView& plan = rows.links->plan();
  profiler::Breakdown table =
      profiler::breakdown(*times, plan, profiler::GroupBy::kCall, {.machine = rows.run.machine()});
  rows.heading("Time");
  for (const std::uint32_t id : calls) {
    const std::string name = profiler::group_name(plan, id, profiler::GroupBy::kCall);
    for (const profiler::BreakdownRow& row : table.rows) {
      if (row.name != name) continue;
      const std::string fact = fmt::format("query {{run}} 'call=={}' --by call | /rows/0/", id);
      rows.text("call", std::to_string(id));
      rows.number(InspectionKind::kMilliseconds, "of a step", table.ms(row.ns), fact + "ms");
      rows.number(InspectionKind::kShare, "share", table.share(row), fact + "share");
      if (row.flops > 0.0) {
        rows.number(InspectionKind::kGigaflops, "does", row.gflops(), fact + "gflops");
      }
      rows.number(InspectionKind::kGigabytes, "moves", row.gbs(), fact + "gbs");
      if (row.roof_ns > 0.0) {
        rows.number(InspectionKind::kShare, "of its roof", row.roof(), fact + "roof");
      }
      add_reason(rows, plan.calls[id], row);
    }
  }
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
  const std::size_t stages = rows.run.stages().size();
  const Node* in_graph = stages == 0 ? nullptr : node_of(rows.run.graph(stages - 1), node.serial);
  if (in_graph != nullptr) rows.text("attributes", attributes_text(in_graph->attributes));
  double flops = 0.0;
  double read = 0.0;
  double written = 0.0;
  for (const std::uint32_t call : calls) {
    flops += static_cast<double>(plan.calls[call].flops);
    read += static_cast<double>(plan.calls[call].bytes_read);
    written += static_cast<double>(plan.calls[call].bytes_written);
  }
  const std::string fact = calls.empty() ? "" : calls_fact(calls[0]);
  const auto at = [&](std::string_view key) {
    return fact.empty() ? fact : fact + std::string(key);
  };
  rows.number(InspectionKind::kFlops, "FLOPs", flops, at("flops"));
  rows.number(InspectionKind::kBytes, "reads", read, at("bytes_read"));
  rows.number(InspectionKind::kBytes, "writes", written, at("bytes_written"));
  add_times(rows, calls);
  add_kernels(rows, calls);
  add_operands(rows, "Reads", calls, &PlanCall::inputs);
  add_operands(rows, "Writes", calls, &PlanCall::outputs);
  add_provenance(rows, node);
}

}  // namespace trainscope::gui
