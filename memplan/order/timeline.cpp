// Follows an order and cuts windows out of it.
#include "memplan/order/timeline.h"

#include <algorithm>

namespace trainscope::memplan {

using std::int32_t;
using std::int64_t;
using std::size_t;

Timeline::Timeline(const OrderGraph& graph, std::vector<int32_t> order)
    : graph_(graph), order_(std::move(order)) {
  measure();
}

void Timeline::measure() {
  const OrderProblem& problem = graph_.problem;
  born_.assign(problem.values.size(), -1);
  last_use_.assign(problem.values.size(), -1);
  before_.clear();
  during_.clear();
  LiveSet live(graph_);
  for (size_t at = 0; at < order_.size(); ++at) {
    before_.push_back(live.bytes());
    during_.push_back(live.effect_of(order_[at]).during_bytes);
    live.run(order_[at]);
    const OrderOp& op = graph_.op(order_[at]);
    for (int32_t v : op.makes) born_[static_cast<size_t>(v)] = static_cast<int64_t>(at);
    for (int32_t v : op.reads) last_use_[static_cast<size_t>(v)] = static_cast<int64_t>(at);
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].kept) last_use_[v] = static_cast<int64_t>(order_.size());
  }
}

size_t Timeline::peak_position() const {
  return static_cast<size_t>(std::max_element(during_.begin(), during_.end()) - during_.begin());
}

Subproblem Timeline::cut(size_t begin, size_t end) const {
  Subproblem subproblem{.problem = {}, .base_bytes = before_[begin]};
  std::vector<std::pair<int32_t, int32_t>> known;  // sorted: value and its index in the subproblem
  for (size_t at = begin; at < end; ++at) {
    const OrderOp& op = graph_.op(order_[at]);
    for (const std::vector<int32_t>* values : {&op.reads, &op.makes}) {
      for (int32_t v : *values) known.emplace_back(v, 0);
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (auto& [value, index] : known) {
    const auto v = static_cast<size_t>(value);
    index = static_cast<int32_t>(subproblem.problem.values.size());
    const bool later = last_use_[v] >= static_cast<int64_t>(end);
    subproblem.problem.values.push_back({graph_.problem.values[v].bytes, later});
    if (born_[v] < static_cast<int64_t>(begin)) {
      subproblem.base_bytes -= graph_.problem.values[v].bytes;
    }
  }
  const auto local = [&known](int32_t value) {
    return std::lower_bound(known.begin(), known.end(), std::pair(value, 0))->second;
  };
  std::vector<std::pair<int32_t, int32_t>> ops;  // sorted: op and its index in the subproblem
  for (size_t at = begin; at < end; ++at) {
    ops.emplace_back(order_[at], static_cast<int32_t>(at - begin));
  }
  std::sort(ops.begin(), ops.end());
  for (size_t at = begin; at < end; ++at) {
    const OrderOp& op = graph_.op(order_[at]);
    OrderOp copy{.workspace_bytes = op.workspace_bytes};
    for (int32_t v : op.reads) copy.reads.push_back(local(v));
    for (int32_t v : op.makes) copy.makes.push_back(local(v));
    for (const OrderInPlace& pair : op.in_place) {
      copy.in_place.push_back({.read = local(pair.read), .made = local(pair.made)});
    }
    for (int32_t before : op.after) {
      const auto found = std::lower_bound(ops.begin(), ops.end(), std::pair(before, 0));
      if (found != ops.end() && found->first == before) copy.after.push_back(found->second);
    }
    subproblem.problem.ops.push_back(std::move(copy));
  }
  return subproblem;
}

void Timeline::replace(size_t begin, const std::vector<int32_t>& local) {
  const std::vector<int32_t> old(
      order_.begin() + static_cast<std::ptrdiff_t>(begin),
      order_.begin() + static_cast<std::ptrdiff_t>(begin + local.size()));
  for (size_t i = 0; i < local.size(); ++i) {
    order_[begin + i] = old[static_cast<size_t>(local[i])];
  }
  measure();
}

std::vector<bool> Timeline::reachable(int32_t op,
                                      const std::vector<std::vector<int32_t>>& edges) const {
  std::vector<bool> found(graph_.problem.ops.size(), false);
  std::vector<int32_t> open = {op};
  while (!open.empty()) {
    const int32_t from = open.back();
    open.pop_back();
    for (int32_t to : edges[static_cast<size_t>(from)]) {
      if (found[static_cast<size_t>(to)]) continue;
      found[static_cast<size_t>(to)] = true;
      open.push_back(to);
    }
  }
  return found;
}

int64_t Timeline::certain_bytes(size_t at) const {
  const OrderProblem& problem = graph_.problem;
  const int32_t index = order_[at];
  const OrderOp& op = graph_.op(index);
  std::vector<bool> earlier = reachable(index, graph_.predecessors);
  std::vector<bool> later = reachable(index, graph_.successors);
  std::vector<bool> made(problem.values.size(), false);    // by an op of the problem
  std::vector<bool> early(problem.values.size(), false);   // by one that comes before
  std::vector<bool> wanted(problem.values.size(), false);  // by one that comes after
  for (size_t i = 0; i < problem.ops.size(); ++i) {
    if (problem.ops[i].phase < op.phase) earlier[i] = true;
    if (problem.ops[i].phase > op.phase) later[i] = true;
    for (int32_t v : problem.ops[i].makes) {
      made[static_cast<size_t>(v)] = true;
      if (earlier[i]) early[static_cast<size_t>(v)] = true;
    }
    if (!later[i]) continue;
    for (int32_t v : problem.ops[i].reads) wanted[static_cast<size_t>(v)] = true;
  }
  const auto value_of = [&problem](int32_t v) { return problem.values[static_cast<size_t>(v)]; };
  int64_t bytes = op.workspace_bytes;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const bool there = early[v] || !made[v];
    if (there && (wanted[v] || problem.values[v].kept)) bytes += problem.values[v].bytes;
  }
  for (int32_t v : op.reads) {
    const bool counted = wanted[static_cast<size_t>(v)] || value_of(v).kept;
    if (!counted) bytes += value_of(v).bytes;
  }
  for (int32_t v : op.makes) bytes += value_of(v).bytes;
  for (int32_t v : op.makes) {
    const bool shares =
        std::any_of(op.in_place.begin(), op.in_place.end(), [&](const OrderInPlace& pair) {
          const bool dies = !wanted[static_cast<size_t>(pair.read)] && !value_of(pair.read).kept;
          return pair.made == v && dies;
        });
    if (shares) bytes -= value_of(v).bytes;
  }
  return bytes;
}

}  // namespace trainscope::memplan
