// Step model -> recompute problem, and its plan back as an order of units.
#include "engine/recompute/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/core/error.h"
#include "engine/recompute/stoppable.h"
#include "memplan/remat/baselines.h"
#include "memplan/remat/planner.h"

namespace trainscope {
namespace {

constexpr double kPicoseconds = 1e12;  // the planner counts whole ones

std::int64_t picoseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * kPicoseconds));
}

constexpr std::int32_t kNone = -1;

}  // namespace

// A unit that must be recomputed is two nodes: the second one, just before the first unit of the
// backward phase that reads it, is what the backward phase reads.
RecomputePlanner::RecomputePlanner(const StepModel& model, std::stop_token stop)
    : unit_count_(model.units.size()), stop_(std::move(stop)) {
  std::vector<std::int32_t> node_of_unit(model.units.size(), kNone);
  std::vector<bool> second(model.units.size(), false);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    const StepUnit& unit = model.units[i];
    std::vector<int> open;
    if (!unit.forward) open.assign(unit.inputs.rbegin(), unit.inputs.rend());
    while (!open.empty()) {
      const int input = open.back();
      const auto at = static_cast<std::size_t>(input);
      if (!model.units[at].recompute || second[at]) {
        open.pop_back();
        continue;
      }
      const std::size_t size = open.size();
      for (int of : model.units[at].inputs) {
        const auto of_at = static_cast<std::size_t>(of);
        if (model.units[of_at].recompute && !second[of_at]) open.push_back(of);
      }
      if (open.size() > size) continue;
      open.pop_back();
      second[at] = true;
      add_node(model, input, node_of_unit);
    }
    add_node(model, static_cast<int>(i), node_of_unit);
  }
  planner_.emplace(problem_, stop_);
  const memplan::RematResult all = stoppable([&] {
    return planner_->plan({.budget_bytes = std::numeric_limits<std::int64_t>::max() / 2});
  });
  CHECK_INVARIANT(all.status == memplan::RematStatus::kPlanned);
  plain_peak_bytes_ = all.save_all_bytes;
  least_bytes_ = all.least_bytes;
  hungriest_unit_ = unit_of_node_[static_cast<std::size_t>(all.least_node)];
}

void RecomputePlanner::add_node(const StepModel& model, int unit,
                                std::vector<std::int32_t>& node_of_unit) {
  const StepUnit& from = model.units[static_cast<std::size_t>(unit)];
  const bool second = node_of_unit[static_cast<std::size_t>(unit)] != kNone;
  memplan::RematNode node{.id = static_cast<std::int64_t>(problem_.nodes.size()),
                          .bytes = from.bytes,
                          .time = picoseconds(from.seconds),
                          .backward = !from.forward || second,
                          .may_rerun = from.forward && !from.keep && !second,
                          .workspace_bytes = from.workspace_bytes};
  for (int input : from.inputs) {
    node.inputs.push_back(node_of_unit[static_cast<std::size_t>(input)]);
  }
  std::ranges::sort(node.inputs);
  node_of_unit[static_cast<std::size_t>(unit)] = static_cast<std::int32_t>(problem_.nodes.size());
  problem_.nodes.push_back(std::move(node));
  unit_of_node_.push_back(unit);
}

std::optional<PlannedOrder> RecomputePlanner::plan(std::int64_t budget_bytes,
                                                   memplan::RematEffort effort, double seconds) {
  if (budget_bytes < least_bytes_) return std::nullopt;
  const memplan::RematResult result = stoppable([&] {
    return planner_->plan({.budget_bytes = budget_bytes, .seconds = seconds, .effort = effort});
  });
  CHECK_INVARIANT(result.status != memplan::RematStatus::kBadProblem);
  if (result.status != memplan::RematStatus::kPlanned) return std::nullopt;
  PlannedOrder planned{.order = {}, .seconds = static_cast<double>(result.time) / kPicoseconds};
  for (const memplan::RematAction& each : result.plan.actions) {
    if (each.kind != memplan::RematActionKind::kCompute) continue;
    planned.order.push_back(unit_of_node_[static_cast<std::size_t>(each.node)]);
  }
  return planned;
}

std::vector<std::vector<bool>> RecomputePlanner::unit_sets(
    std::span<const memplan::FrontPoint> points) const {
  std::vector<std::vector<bool>> sets;
  for (const memplan::FrontPoint& point : points) {
    std::vector<bool> recomputed(unit_count_, false);
    for (std::int32_t node : point.dropped) {
      recomputed[static_cast<std::size_t>(unit_of_node_[static_cast<std::size_t>(node)])] = true;
    }
    sets.push_back(std::move(recomputed));
  }
  return sets;
}

std::vector<std::vector<bool>> RecomputePlanner::front() {
  return stoppable([this] { return unit_sets(planner_->front().points()); });
}

std::int64_t RecomputePlanner::least_front_bytes() {
  return stoppable([this] { return planner_->front().points().back().peak_bytes; });
}

std::vector<std::vector<bool>> RecomputePlanner::baseline(std::string_view method) const {
  const std::vector<memplan::RematBaseline> all =
      stoppable([this] { return memplan::remat_baselines(memplan::RematGraph(problem_, stop_)); });
  for (const memplan::RematBaseline& each : all) {
    if (each.name == method) return unit_sets(each.points);
  }
  return {};
}

}  // namespace trainscope
