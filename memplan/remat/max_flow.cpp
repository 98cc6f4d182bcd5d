// Blocking flows, without recursion.
#include "memplan/remat/max_flow.h"

#include <algorithm>

#include "memplan/at.h"

namespace trainscope::memplan {

std::int32_t MaxFlow::add_arc(std::int32_t from, std::int32_t to) {
  const auto arc = static_cast<std::int32_t>(arcs_.size());
  arcs_.push_back({.to = to, .next = first_arc_[at(from)]});
  arcs_.push_back({.to = from, .next = first_arc_[at(to)]});
  first_arc_[at(from)] = arc;
  first_arc_[at(to)] = arc + 1;
  return arc;
}

void MaxFlow::set_capacity(std::int32_t arc, std::int64_t capacity) {
  arcs_[at(arc)].left = std::min(capacity, kUncuttable);
  arcs_[at(arc) + 1].left = 0;
}

bool MaxFlow::find_levels(std::int32_t source, std::int32_t sink) {
  level_.assign(first_arc_.size(), -1);
  level_[at(source)] = 0;
  queue_.assign(1, source);
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const std::int32_t node = queue_[head];
    for (std::int32_t arc = first_arc_[at(node)]; arc >= 0; arc = arcs_[at(arc)].next) {
      const Arc& leaving = arcs_[at(arc)];
      if (leaving.left == 0 || level_[at(leaving.to)] >= 0) continue;
      level_[at(leaving.to)] = level_[at(node)] + 1;
      queue_.push_back(leaving.to);
    }
  }
  return level_[at(sink)] >= 0;
}

// One augmenting path of the layered network; 0 if none is left.
std::int64_t MaxFlow::push_path(std::int32_t source, std::int32_t sink) {
  path_.clear();
  std::int32_t node = source;
  while (node != sink) {
    std::int32_t& arc = current_[at(node)];
    while (arc >= 0 &&
           (arcs_[at(arc)].left == 0 || level_[at(arcs_[at(arc)].to)] != level_[at(node)] + 1)) {
      arc = arcs_[at(arc)].next;
    }
    if (arc >= 0) {
      path_.push_back(arc);
      node = arcs_[at(arc)].to;
      continue;
    }
    if (path_.empty()) return 0;
    level_[at(node)] = -1;  // a dead end
    node = arcs_[at(path_.back()) ^ 1u].to;
    path_.pop_back();
  }
  std::int64_t amount = kUncuttable;
  for (const std::int32_t arc : path_) amount = std::min(amount, arcs_[at(arc)].left);
  for (const std::int32_t arc : path_) {
    arcs_[at(arc)].left -= amount;
    arcs_[at(arc) ^ 1u].left += amount;
  }
  return amount;
}

std::int64_t MaxFlow::solve(std::int32_t source, std::int32_t sink) {
  std::int64_t total = 0;
  while (find_levels(source, sink)) {
    current_ = first_arc_;
    for (std::int64_t pushed = push_path(source, sink); pushed > 0;
         pushed = push_path(source, sink)) {
      total += pushed;
      if (total >= kUncuttable) return kUncuttable;
    }
  }
  return total;
}

}  // namespace trainscope::memplan
