// Bytes alive, op by op.
#include "memplan/order/live_set.h"

#include <algorithm>

namespace trainscope::memplan {

using std::int32_t;
using std::int64_t;
using std::size_t;

OrderGraph::OrderGraph(const OrderProblem& order_problem)
    : problem(order_problem),
      successors(order_problem.ops.size()),
      predecessors(order_problem.ops.size()),
      readers(order_problem.values.size(), 0) {
  constexpr int32_t kNobody = -1;
  std::vector<int32_t> maker(problem.values.size(), kNobody);
  for (size_t i = 0; i < problem.ops.size(); ++i) {
    const OrderOp& op = problem.ops[i];
    std::vector<int32_t>& before = predecessors[i];
    before = op.after;
    for (int32_t v : op.reads) {
      ++readers[static_cast<size_t>(v)];
      const int32_t from = maker[static_cast<size_t>(v)];
      if (from != kNobody) before.push_back(from);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (int32_t from : before) {
      successors[static_cast<size_t>(from)].push_back(static_cast<int32_t>(i));
    }
    for (int32_t v : op.makes) maker[static_cast<size_t>(v)] = static_cast<int32_t>(i);
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const OrderValue& value = problem.values[v];
    if (maker[v] == kNobody && (value.kept || readers[v] > 0)) start_bytes += value.bytes;
  }
}

LiveSet::LiveSet(const OrderGraph& graph)
    : graph_(&graph), readers_left_(graph.readers), bytes_(graph.start_bytes) {
  waits_.reserve(graph.predecessors.size());
  for (const std::vector<int32_t>& before : graph.predecessors) {
    waits_.push_back(static_cast<int32_t>(before.size()));
  }
}

// Whether the op that is about to run is the last one to need the value.
bool LiveSet::dies(int32_t value) const {
  return readers_left_[static_cast<size_t>(value)] == 1 &&
         !graph_->problem.values[static_cast<size_t>(value)].kept;
}

LiveSet::Effect LiveSet::effect_of(int32_t index) const {
  const OrderOp& op = graph_->op(index);
  Effect effect{.during_bytes = bytes_ + op.workspace_bytes, .after_bytes = bytes_};
  for (int32_t v : op.makes) {
    const OrderValue& value = graph_->problem.values[static_cast<size_t>(v)];
    effect.during_bytes += value.bytes;
    const bool wanted = value.kept || graph_->readers[static_cast<size_t>(v)] > 0;
    if (wanted) effect.after_bytes += value.bytes;
  }
  for (int32_t v : op.reads) {
    if (dies(v)) effect.after_bytes -= graph_->problem.values[static_cast<size_t>(v)].bytes;
  }
  effect.during_bytes -=
      taken_over_bytes(graph_->problem, op, [this](int32_t value) { return dies(value); });
  return effect;
}

void LiveSet::run(int32_t index) {
  bytes_ = effect_of(index).after_bytes;
  for (int32_t v : graph_->op(index).reads) --readers_left_[static_cast<size_t>(v)];
  for (int32_t next : graph_->successors[static_cast<size_t>(index)]) {
    --waits_[static_cast<size_t>(next)];
  }
}

}  // namespace trainscope::memplan
