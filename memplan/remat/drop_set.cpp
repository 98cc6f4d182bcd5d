// Prices plans in which each value is recomputed at most once.
#include "memplan/remat/drop_set.h"

#include <algorithm>
#include <numeric>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

}  // namespace

DropSimulator::DropSimulator(const RematGraph& graph, int32_t frontier)
    : graph_(graph),
      frontier_(frontier),
      made_at_(at(graph.size())),
      available_(at(graph.size()), 1) {
  std::iota(made_at_.begin(), made_at_.end(), 0);
  for (int32_t node = 0; node <= frontier; ++node) {
    forward_time_ += graph.time(node);
    forward_.push_back({.bytes = graph.bytes(node), .needed_until = node});
    for (const int32_t input : graph.inputs(node)) forward_[at(input)].needed_until = node;
  }
}

void DropSimulator::run_later(int32_t node) {
  const auto now = static_cast<int32_t>(values_.size());
  time_ += node <= frontier_ ? graph_.rerun_time(node) : graph_.time(node);
  made_at_[at(node)] = now;
  later_executions_.push_back(node);
  values_.push_back({.bytes = graph_.bytes(node), .needed_until = now});
  for (const int32_t input : graph_.inputs(node))
    values_[at(made_at_[at(input)])].needed_until = now;
}

// What the stage needs and has not, then its node.
void DropSimulator::run_missing(int32_t stage) {
  missing_.assign(1, stage);
  for (size_t i = 0; i < missing_.size(); ++i) {
    for (const int32_t input : graph_.inputs(missing_[i])) {
      if (available_[at(input)] != 0) continue;
      available_[at(input)] = 1;
      missing_.push_back(input);
    }
  }
  if (missing_.size() > 1) std::sort(missing_.begin(), missing_.end());
  for (const int32_t node : missing_) run_later(node);
}

int64_t DropSimulator::peak_bytes() {
  leaving_.assign(values_.size(), 0);
  for (const Value& value : values_) leaving_[at(value.needed_until)] += value.bytes;
  int64_t live = 0;
  int64_t peak = -1;
  const auto pass = [&](size_t position, int32_t node) {
    live += values_[position].bytes;
    if (const int64_t bytes = live + graph_.workspace_bytes(node); bytes > peak) {
      peak = bytes;
      peak_position_ = static_cast<int32_t>(position);
    }
    live -= leaving_[position];
  };
  for (int32_t node = 0; node <= frontier_; ++node) pass(at(node), node);
  for (size_t i = 0; i < later_executions_.size(); ++i)
    pass(forward_.size() + i, later_executions_[i]);
  return peak;
}

DropCost DropSimulator::run(std::span<const int32_t> dropped) {
  time_ = forward_time_;
  values_ = forward_;
  later_executions_.clear();
  for (const int32_t node : dropped) available_[at(node)] = 0;
  for (int32_t stage = frontier_ + 1; stage < graph_.size(); ++stage) run_missing(stage);
  const DropCost cost{.peak_bytes = peak_bytes(), .time = time_};
  for (const int32_t node : dropped) available_[at(node)] = 1;
  for (const int32_t node : later_executions_) made_at_[at(node)] = node;
  return cost;
}

}  // namespace trainscope::memplan
