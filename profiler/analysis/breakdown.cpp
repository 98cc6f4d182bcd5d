// Calls are grouped by what the plan says of them.
#include "profiler/analysis/breakdown.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/numbers.h"
#include "profiler/analysis/roof.h"

namespace trainscope::profiler {
namespace {

constexpr std::array<std::pair<std::string_view, GroupBy>, 7> kGroups = {
    {{"call", GroupBy::kCall},
     {"kernel", GroupBy::kKernel},
     {"op", GroupBy::kOp},
     {"node", GroupBy::kNode},
     {"layer", GroupBy::kLayer},
     {"phase", GroupBy::kPhase},
     {"pass", GroupBy::kPass}}};

constexpr std::array<FilterField, 20> kFields = {{{"call", true},
                                                  {"name"},
                                                  {"kernel"},
                                                  {"op"},
                                                  {"node"},
                                                  {"layer"},
                                                  {"phase"},
                                                  {"pass"},
                                                  {"dtype"},
                                                  {"ms", true},
                                                  {"busy_ms", true},
                                                  {"share", true},
                                                  {"count", true},
                                                  {"flops", true},
                                                  {"direct_flops", true},
                                                  {"bytes", true},
                                                  {"gflops", true},
                                                  {"gbs", true},
                                                  {"intensity", true},
                                                  {"roof", true}}};

constexpr std::array<std::string_view, 13> kColumns = {
    "name",         "ms",    "median_ms", "share", "count",     "busy_ms", "flops",
    "direct_flops", "bytes", "gflops",    "gbs",   "intensity", "roof"};

std::string_view op_or_kind(const PlanView& plan, const PlanCall& call) {
  const std::string_view op = plan.op_of(call);
  return op.empty() ? name_of(call.kind) : op;
}

std::string_view pass_of(const PlanView& plan, const PlanCall& call) {
  return call.node == kNoRow ? std::string_view() : plan.text(plan.nodes[call.node].pass);
}

// Of a node without a source, which training has added to the model; empty: nothing that has a
// name.
std::string_view part_of_training(const PlanView& plan, const PlanNode& node) {
  if (plan.text(node.pass) == "loss") return kLossPart;
  if (plan.text(node.pass) == "accumulate") return kAccumulationPart;
  if (node.backward_of == 0) return {};
  const auto forward = std::ranges::find(plan.nodes, node.backward_of, &PlanNode::serial);
  const bool is_of_loss = forward != plan.nodes.end() && forward->sources.count == 0 &&
                          plan.text(forward->pass) == "loss";
  return is_of_loss ? kLossPart : std::string_view();
}

BreakdownRow row_of(const CallTime& time, const PlanCall& call) {
  const auto runs = static_cast<double>(time.runs);
  return {.ns = time.sum(),
          .busy_ns = time.busy_ns,
          .runs = time.runs,
          .flops = runs * time.rows * static_cast<double>(executed_flops(call)),
          .direct_flops = runs * static_cast<double>(call.flops),
          .bytes = runs * (static_cast<double>(call.bytes_read) +
                           static_cast<double>(call.bytes_written))};
}

bool is_left(const Filter& filter, const Breakdown& table, const PlanView& plan, std::size_t id,
             const BreakdownRow& row) {
  const PlanCall& call = plan.calls[id];
  const std::string_view node = onnx_node_of(plan, call);
  const std::array<FieldValue, kFields.size()> values = {
      {{.number = static_cast<double>(id)},
       {.text = plan.name_of(call)},
       {.text = kernel_of(plan, call)},
       {.text = op_or_kind(plan, call)},
       {.text = node},
       {.text = layer_of(node)},
       {.text = name_of(call.phase)},
       {.text = pass_of(plan, call)},
       {.text = plan.text(call.dtype)},
       {.number = column_of(table, row, "ms")},
       {.number = column_of(table, row, "busy_ms")},
       {.number = column_of(table, row, "share")},
       {.number = column_of(table, row, "count")},
       {.number = column_of(table, row, "flops")},
       {.number = column_of(table, row, "direct_flops")},
       {.number = column_of(table, row, "bytes")},
       {.number = row.gflops()},
       {.number = row.gbs()},
       {.number = row.intensity()},
       {.number = row.roof()}}};
  return filter.matches(values);
}

// Rows, and the calls of each.
class Groups {
 public:
  void add(std::string name, std::size_t call, const BreakdownRow& row) {
    const auto [found, is_new] = known_.emplace(std::move(name), rows_.size());
    if (is_new) {
      rows_.push_back({.name = found->first});
      calls_.emplace_back();
    }
    rows_[found->second].add(row);
    calls_[found->second].push_back(call);
  }

  // With what their steps took, one row after the other: all of them may take much memory.
  std::vector<BreakdownRow> take(const StepTimes& times, bool keeps_steps) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::vector<double> steps(times.steps.size(), 0.0);
      for (const std::size_t call : calls_[i]) {
        const StepNs& ns = times.calls[call].ns;
        for (std::size_t step = 0; step < ns.size(); ++step) {
          steps[step] += static_cast<double>(ns[step]);
        }
      }
      rows_[i].median_ns = median(steps);
      if (keeps_steps) rows_[i].step_ns = std::move(steps);
    }
    return std::move(rows_);
  }

 private:
  std::vector<BreakdownRow> rows_;
  std::vector<std::vector<std::size_t>> calls_;
  std::unordered_map<std::string, std::size_t> known_;
};

void add_other(Breakdown& table, const StepTimes& times, OtherTime other) {
  BreakdownRow row{.name = std::string(name_of(other)), .is_call = false};
  for (const StepTime& step : times.steps) {
    const std::int64_t ns = step.other_ns[static_cast<std::size_t>(other)];
    row.ns += ns;
    row.step_ns.push_back(static_cast<double>(ns));
  }
  row.busy_ns = row.ns;
  row.median_ns = median(row.step_ns);
  if (row.ns > 0) table.rows.push_back(std::move(row));
}

}  // namespace

void BreakdownRow::add(const BreakdownRow& row) {
  ns += row.ns;
  busy_ns += row.busy_ns;
  runs += row.runs;
  flops += row.flops;
  direct_flops += row.direct_flops;
  bytes += row.bytes;
  roof_ns += row.roof_ns;
}

std::string group_name(const PlanView& plan, std::size_t id, GroupBy by) {
  const PlanCall& call = plan.calls[id];
  switch (by) {
    case GroupBy::kCall:
      return std::to_string(id) + " " + std::string(plan.name_of(call));
    case GroupBy::kKernel:
      return std::string(kernel_of(plan, call));
    case GroupBy::kOp:
      return std::string(op_or_kind(plan, call));
    case GroupBy::kNode:
      return std::string(onnx_node_of(plan, call));
    case GroupBy::kLayer:
      return std::string(layer_of(onnx_node_of(plan, call)));
    case GroupBy::kPhase:
      return std::string(name_of(call.phase));
    case GroupBy::kPass:
      return std::string(pass_of(plan, call));
  }
  CHECK_INVARIANT(false);
}

std::optional<GroupBy> group_named(std::string_view name) {
  const auto found = std::ranges::find(kGroups, name, &std::pair<std::string_view, GroupBy>::first);
  return found == kGroups.end() ? std::nullopt : std::optional(found->second);
}

std::span<const FilterField> call_fields() { return kFields; }
std::span<const std::string_view> column_names() { return kColumns; }

std::string_view onnx_node_of(const PlanView& plan, const PlanCall& call) {
  if (call.node == kNoRow) return plan.name_of(call);
  const std::span<const TextId> sources = plan.sources_of(call);
  if (!sources.empty()) return plan.text(sources[0]);
  const std::string_view part = part_of_training(plan, plan.nodes[call.node]);
  return part.empty() ? plan.name_of(call) : part;
}

std::string_view kernel_of(const PlanView& plan, const PlanCall& call) {
  const std::string_view kernel = plan.text(call.kernel);
  return kernel.empty() ? name_of(call.kind) : kernel;
}

std::string_view layer_of(std::string_view node) {
  std::size_t end = node.rfind('/');
  if (end == std::string_view::npos) end = node.rfind('.');
  return end == std::string_view::npos || end == 0 ? std::string_view("(top)")
                                                   : node.substr(0, end);
}

Breakdown breakdown(const StepTimes& times, const PlanView& plan, GroupBy by,
                    const BreakdownWishes& wishes) {
  Breakdown table{.steps = static_cast<std::int64_t>(times.steps.size()),
                  .total_ns = times.total_ns,
                  .is_of_device = times.are_of_device,
                  .run_steps = times.run_steps,
                  .machines = times.machines};
  for (const StepTime& step : times.steps) table.step_ns.push_back(static_cast<double>(step.ns()));
  Groups groups;
  for (std::size_t id = 0; id < times.calls.size(); ++id) {
    if (times.calls[id].runs == 0) continue;
    BreakdownRow row = row_of(times.calls[id], plan.calls[id]);
    if (wishes.machine != nullptr) {
      row.roof_ns = static_cast<double>(row.runs) *
                    roof_ns(*wishes.machine, plan, plan.calls[id], times.calls[id].rows);
    }
    if (wishes.filter != nullptr && !is_left(*wishes.filter, table, plan, id, row)) continue;
    groups.add(group_name(plan, id, by), id, row);
  }
  table.rows = groups.take(times, wishes.keeps_steps);
  if (wishes.filter != nullptr) return table;
  for (std::size_t i = 0; i < kOtherTimes; ++i) {
    add_other(table, times, static_cast<OtherTime>(i));
  }
  return table;
}

double column_of(const Breakdown& table, const BreakdownRow& row, std::string_view column) {
  const double steps = std::max(1.0, static_cast<double>(table.steps));
  if (column == "ms") return table.ms(row.ns);
  if (column == "median_ms") return row.median_ns / 1e6;
  if (column == "share") return table.share(row);
  if (column == "count") return static_cast<double>(row.runs) / steps;
  if (column == "busy_ms") return table.ms(row.busy_ns);
  if (column == "flops") return row.flops / steps;
  if (column == "direct_flops") return row.direct_flops / steps;
  if (column == "bytes") return row.bytes / steps;
  if (column == "gflops") return row.gflops();
  if (column == "gbs") return row.gbs();
  if (column == "intensity") return row.intensity();
  CHECK_INVARIANT(column == "roof");
  return row.roof();
}

bool sort_rows(Breakdown& table, std::string_view column) {
  if (std::ranges::find(kColumns, column) == kColumns.end()) return false;
  if (column == "name") {
    std::ranges::stable_sort(table.rows, {}, &BreakdownRow::name);
    return true;
  }
  std::ranges::stable_sort(table.rows, [&](const BreakdownRow& a, const BreakdownRow& b) {
    return column_of(table, a, column) > column_of(table, b, column);
  });
  return true;
}

}  // namespace trainscope::profiler
