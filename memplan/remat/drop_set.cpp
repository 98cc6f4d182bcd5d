// Prices plans in which each value runs again at most once.
#include "memplan/remat/drop_set.h"

#include <algorithm>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

size_t at(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

DropSimulator::DropSimulator(const RematGraph& graph, int32_t frontier)
    : graph_(graph),
      frontier_(frontier),
      available_(at(graph.size())),
      made_at_(at(graph.size())) {}

// What the stage needs and has not, then its node.
void DropSimulator::run_missing(int32_t stage) {
  missing_.assign(1, stage);
  for (size_t i = 0; i < missing_.size(); ++i) {
    for (const int32_t input : graph_.inputs(missing_[i])) {
      if (available_[at(input)]) continue;
      available_[at(input)] = true;
      missing_.push_back(input);
    }
  }
  std::sort(missing_.begin(), missing_.end());
  runs_.insert(runs_.end(), missing_.begin(), missing_.end());
}

void DropSimulator::list_runs(std::span<const int32_t> dropped) {
  runs_.clear();
  for (int32_t node = 0; node <= frontier_; ++node) runs_.push_back(node);
  std::fill(available_.begin(), available_.end(), true);
  for (const int32_t node : dropped) available_[at(node)] = false;
  for (int32_t stage = frontier_ + 1; stage < graph_.size(); ++stage) run_missing(stage);
}

DropCost DropSimulator::run(std::span<const int32_t> dropped) {
  list_runs(dropped);
  needed_until_.assign(runs_.size(), 0);
  DropCost cost;
  for (size_t position = 0; position < runs_.size(); ++position) {
    const int32_t node = runs_[position];
    const auto now = static_cast<int32_t>(position);
    const bool again = now > frontier_ && node <= frontier_;
    cost.time += again ? graph_.rerun_time(node) : graph_.time(node);
    made_at_[at(node)] = now;
    needed_until_[position] = now;
    for (const int32_t input : graph_.inputs(node)) needed_until_[at(made_at_[at(input)])] = now;
  }
  leaving_.assign(runs_.size(), 0);
  for (size_t position = 0; position < runs_.size(); ++position) {
    leaving_[at(needed_until_[position])] += graph_.bytes(runs_[position]);
  }
  int64_t live = 0;
  for (size_t position = 0; position < runs_.size(); ++position) {
    const int32_t node = runs_[position];
    live += graph_.bytes(node);
    cost.peak_bytes = std::max(cost.peak_bytes, live + graph_.workspace_bytes(node));
    live -= leaving_[position];
  }
  return cost;
}

}  // namespace trainscope::memplan
