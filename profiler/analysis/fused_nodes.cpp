// Each node points to the one that it counts for, until one points nowhere.
#include "profiler/analysis/fused_nodes.h"

#include <cstddef>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/numbers.h"

namespace trainscope::profiler {

FusedNodes::FusedNodes(const PlanView& a, const PlanView& b) {
  add(a);
  add(b);
}

std::string FusedNodes::name_of(std::string_view node) const {
  auto found = into_.find(node);
  if (found == into_.end()) return std::string(node);
  for (;;) {
    const auto next = into_.find(found->second);
    if (next == into_.end()) return found->second;
    found = next;
  }
}

// The root of `other` points to that of `first`, so that no circle comes about.
void FusedNodes::unite(std::string_view first, std::string_view other) {
  std::string root = name_of(first);
  std::string below = name_of(other);
  if (root != below) into_.emplace(std::move(below), std::move(root));
}

void FusedNodes::add(const PlanView& plan) {
  std::map<std::string_view, std::set<std::string_view>>
      firsts;  // of the calls that compute a node
  for (const PlanCall& call : plan.calls) {
    if (call.phase != PlanPhase::kForward || call.node == kNoRow) continue;
    const std::span<const TextId> sources = plan.sources_of(call);
    for (const TextId source : sources) firsts[plan.text(source)].insert(plan.text(sources[0]));
  }
  for (const auto& [node, of_calls] : firsts) {
    if (of_calls.size() == 1) unite(*of_calls.begin(), node);
  }
}

void FusedNodes::merge(Breakdown& by_node) const {
  std::vector<BreakdownRow> rows;
  std::unordered_map<std::string, std::size_t> known;
  for (BreakdownRow& row : by_node.rows) {
    if (row.is_call) row.name = name_of(row.name);
    const auto [at, is_new] = known.emplace(row.name, rows.size());
    if (is_new || !row.is_call) {
      rows.push_back(std::move(row));
      continue;
    }
    BreakdownRow& sum = rows[at->second];
    sum.add(row);
    for (std::size_t i = 0; i < row.step_ns.size(); ++i) sum.step_ns[i] += row.step_ns[i];
    sum.median_ns = median(sum.step_ns);
  }
  by_node.rows = std::move(rows);
}

}  // namespace trainscope::profiler
