// Joins the compared times with the calls of both plans, by the names of ONNX nodes.
#include "profiler/analysis/run_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/fused_nodes.h"

namespace trainscope::profiler {
namespace {

std::map<std::string, NodeInPlan> nodes_in(const PlanView& plan, const FusedNodes& fused) {
  std::map<std::string, NodeInPlan> nodes;
  std::map<std::string, std::set<std::string_view>> kernels;
  std::vector<bool> counted(plan.values.size(), false);
  for (const PlanCall& call : plan.calls) {
    const std::string name = fused.name_of(onnx_node_of(plan, call));
    NodeInPlan& node = nodes[name];
    ++node.calls;
    kernels[name].insert(kernel_of(plan, call));
    for (const PlanOperand& operand : rows_of(plan.operands, call.outputs)) {
      if (operand.value == kNoRow || counted[operand.value]) continue;
      counted[operand.value] = true;
      node.bytes += plan.values[operand.value].bytes;
    }
  }
  for (auto& [name, node] : nodes) {
    for (const std::string_view kernel : kernels[name]) {
      node.kernels += (node.kernels.empty() ? "" : ", ") + std::string(kernel);
    }
  }
  return nodes;
}

Breakdown times_of(const RunSide& side, const FusedNodes& fused) {
  if (side.times == nullptr || side.times->steps.empty()) return {};
  Breakdown table = breakdown(*side.times, side.plan, GroupBy::kNode);
  fused.merge(table);
  return table;
}

const NodeInPlan* find(const std::map<std::string, NodeInPlan>& nodes, const std::string& name) {
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : &found->second;
}

}  // namespace

RunDifference difference_of(const RunSide& a, const RunSide& b) {
  const FusedNodes fused(a.plan, b.plan);
  Comparison times = compare_profiles(times_of(a, fused), times_of(b, fused));
  const std::vector<ComparedRow> compared = std::exchange(times.rows, {});
  RunDifference difference{
      .times = std::move(times), .arena_a = a.plan.arena().bytes, .arena_b = b.plan.arena().bytes};
  const std::map<std::string, NodeInPlan> nodes_a = nodes_in(a.plan, fused);
  const std::map<std::string, NodeInPlan> nodes_b = nodes_in(b.plan, fused);
  std::set<std::string> seen;
  const auto add = [&](ComparedRow row) {
    DifferenceRow joined{.time = std::move(row)};
    if (joined.time.is_call) {
      if (const NodeInPlan* node = find(nodes_a, joined.time.name)) joined.a = *node;
      if (const NodeInPlan* node = find(nodes_b, joined.time.name)) joined.b = *node;
      seen.insert(joined.time.name);
    }
    difference.rows.push_back(std::move(joined));
  };
  for (const ComparedRow& row : compared) add(row);
  for (const auto* nodes : {&nodes_a, &nodes_b}) {
    for (const auto& [name, node] : *nodes) {
      if (!seen.contains(name)) add({.name = name, .is_call = true, .a = {}, .b = {}});
    }
  }
  std::ranges::stable_sort(difference.rows, std::ranges::greater(), [](const DifferenceRow& row) {
    return std::pair(std::abs(row.time.difference_ns()), std::abs(row.b.bytes - row.a.bytes));
  });
  return difference;
}

}  // namespace trainscope::profiler
