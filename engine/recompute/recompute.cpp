// From a step and a wish to rematerializations: pins, levels, and the planner's search on the
// placed height.
#include "engine/recompute/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/recompute/clusters.h"
#include "engine/recompute/search.h"
#include "engine/recompute/step_model.h"
#include "engine/recompute/time_bound.h"

namespace trainscope {
namespace {

TradePoint point_of(std::string method, const Attempt& attempt) {
  return {.method = std::move(method),
          .arena_bytes = attempt.arena_bytes,
          .seconds = attempt.seconds,
          .rematerialized_nodes = attempt.rematerialized_nodes,
          .host_bytes = attempt.host_bytes};
}

std::vector<TradePoint> points_of(const std::vector<Attempt>& front) {
  std::vector<TradePoint> points;
  for (const Attempt& attempt : front) points.push_back(point_of("front", attempt));
  return points;
}

// Units with a value that one of the patterns names. A pattern without a match is kUsage.
std::vector<bool> matching_units(const Graph& graph, const StepModel& model,
                                 std::span<const std::string> patterns) {
  std::vector<bool> result(model.units.size(), false);
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (std::size_t i = 0; i < model.units.size(); ++i) {
      if (!model.units[i].forward) continue;
      for (NodeId id : model.units[i].nodes) {
        for (ValueId v : graph.node(id).outputs) {
          if (v == kNoValue || !matches_pattern(graph.value(v).name, pattern)) continue;
          result[i] = true;
          found = true;
        }
      }
    }
    require(found, ErrorCode::kUsage, "no value of the forward phase matches '{}'",
            printable(pattern));
  }
  return result;
}

std::vector<bool> chosen_units(const Graph& graph, const StepModel& model,
                               const RecomputeOptions& options) {
  const std::vector<Cluster> clusters = find_clusters(graph, model);
  switch (options.mode) {
    case RecomputeMode::kLevel1:
      return level_units(model, clusters, 1);
    case RecomputeMode::kLevel2:
      return level_units(model, clusters, 2);
    case RecomputeMode::kClusters:
      return requested_units(model, clusters, options.clusters);
    default:
      return std::vector<bool>(model.units.size(), false);
  }
}

// A pattern by which nothing is recomputed is kUsage: all it names is kept, or backward reads none
// of it.
void check_recomputed(const Graph& graph, const StepModel& model, const RecomputeOptions& options) {
  std::vector<bool> recomputed(model.units.size(), false);
  for (std::size_t i = 0; i < recomputed.size(); ++i) recomputed[i] = model.units[i].recompute;
  const std::vector<NodeId> order = phase_order(graph);
  std::vector<bool> is_rematerialized(graph.node_capacity(), false);
  const std::vector<Rematerialization> rematerializations =
      rematerializations_of(graph, model, on_demand_order(model, recomputed));
  for (const Execution& each : rematerialized_order(graph, order, rematerializations).executions) {
    if (each.kind != ExecutionKind::kRematerialized) continue;
    is_rematerialized[static_cast<std::size_t>(each.node)] = true;
  }
  for (const std::string& pattern : options.recompute) {
    const std::vector<bool> named = matching_units(graph, model, std::span(&pattern, 1));
    bool any = false;
    for (std::size_t i = 0; i < named.size(); ++i) {
      for (NodeId id : model.units[i].nodes) {
        any = any || (named[i] && is_rematerialized[static_cast<std::size_t>(id)]);
      }
    }
    require(any, ErrorCode::kUsage,
            "nothing that matches '{}' would be recomputed: 'keep' names it too, or the backward "
            "phase reads none of it",
            printable(pattern));
  }
}

// The model with the user's wishes.
StepModel pinned_model(const Program& plain, std::span<const double> seconds,
                       const RecomputeOptions& options) {
  StepModel model = step_model(plain, seconds);
  const std::vector<bool> keep = matching_units(plain.graph, model, options.keep);
  const std::vector<bool> recompute = matching_units(plain.graph, model, options.recompute);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    model.units[i].keep = keep[i];
    model.units[i].recompute = recompute[i] && !keep[i];
  }
  if (!options.recompute.empty()) check_recomputed(plain.graph, model, options);
  return model;
}

Attempt chosen_attempt(RecomputeSearch& search, const std::vector<bool>& recomputed,
                       const RecomputeOptions& options) {
  if (options.mode != RecomputeMode::kAuto) return search.on_demand(recomputed);
  if (options.budget_bytes) return search.within(*options.budget_bytes);
  return search.quicker_than(options.max_overhead.value_or(0.0));
}

}  // namespace

std::int64_t RecomputePlan::rematerialized_nodes() const {
  return std::ranges::count_if(rematerializations,
                               [](const Rematerialization& each) { return each.node != kNoNode; });
}

std::vector<TradePoint> recompute_front(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower,
                                        const RecomputeOptions& options) {
  RecomputeSearch search(plain, ops, lower, pinned_model(plain, seconds, options), options.link);
  search.refine_front();
  return points_of(search.front());
}

RecomputeSlider::RecomputeSlider(const Program& plain, std::span<const double> seconds,
                                 const OpTable& ops, const LowerOptions& lower,
                                 const RecomputeOptions& options)
    : search_(std::make_unique<RecomputeSearch>(
          plain, ops, lower, pinned_model(plain, seconds, options), options.link)) {}

RecomputeSlider::~RecomputeSlider() = default;

std::vector<TradePoint> RecomputeSlider::front() { return points_of(search_->front()); }

std::optional<TradePoint> RecomputeSlider::point_within(std::int64_t budget_bytes, double seconds) {
  const std::optional<Attempt> found = search_->nearby(budget_bytes, seconds);
  return found ? std::optional(point_of("slider", *found)) : std::nullopt;
}

std::optional<RecomputePlan> RecomputeSlider::plan_within(std::int64_t budget_bytes,
                                                          double seconds) {
  const std::optional<Attempt> found = search_->nearby(budget_bytes, seconds);
  return found ? std::optional(search_->realise(*found)) : std::nullopt;
}

std::vector<TradePoint> compare_methods(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower,
                                        const RecomputeOptions& options) {
  RecomputeSearch search(plain, ops, lower, pinned_model(plain, seconds, options), options.link);
  std::vector<TradePoint> points = {point_of("none", search.as_pinned())};
  const auto add = [&](std::string method, std::vector<bool> recomputed) {
    search.apply_pins(recomputed);
    const Attempt attempt = search.on_demand(recomputed);
    points.push_back(point_of(std::move(method), attempt));
    points.push_back(point_of("planner", search.within(attempt.arena_bytes)));
  };
  const std::vector<Cluster> clusters = find_clusters(plain.graph, search.model());
  for (int level : {1, 2}) {
    add(fmt::format("level {}", level), level_units(search.model(), clusters, level));
  }
  for (const std::vector<bool>& set : search.planner().baseline("sqrt_n")) add("sqrt(n)", set);
  const std::vector<std::vector<bool>> knapsack = search.planner().baseline("knapsack");
  for (std::size_t percent : {75, 50, 25, 0}) {
    if (percent < knapsack.size()) add(fmt::format("knapsack {} %", percent), knapsack[percent]);
  }
  return points;
}

std::vector<Opportunity> recompute_opportunities(const Program& plain,
                                                 std::span<const double> seconds,
                                                 const OpTable& ops, const LowerOptions& lower,
                                                 const RecomputeOptions& options) {
  RecomputeSearch search(plain, ops, lower, pinned_model(plain, seconds, options));
  const Attempt pinned = search.as_pinned();
  const std::vector<Cluster> clusters = find_clusters(plain.graph, search.model());
  std::vector<Opportunity> list;
  for (const Cluster& cluster : clusters) {
    std::vector<bool> recomputed(search.model().units.size(), false);
    Opportunity row{.id = cluster.id, .kind = cluster.kind};
    for (const ClusterUse& use : cluster.uses) {
      const StepUnit& unit = search.model().units[static_cast<std::size_t>(use.unit)];
      if (unit.keep || unit.recompute) continue;
      ++row.places;
      row.saved_bytes += use.saved_bytes;
      for (int i : use.recomputed) recomputed[static_cast<std::size_t>(i)] = true;
    }
    if (row.places == 0) continue;
    search.apply_pins(recomputed);
    const Attempt attempt = search.on_demand(recomputed);
    row.peak_saved_bytes = pinned.arena_bytes - attempt.arena_bytes;
    row.seconds = attempt.seconds - pinned.seconds;
    list.push_back(std::move(row));
  }
  return list;
}

RecomputePlan plan_recompute(const Program& plain, std::span<const double> seconds,
                             const OpTable& ops, const RecomputeOptions& options,
                             const LowerOptions& lower) {
  StepModel model = pinned_model(plain, seconds, options);
  std::vector<bool> recomputed = chosen_units(plain.graph, model, options);
  RecomputeSearch search(plain, ops, lower, std::move(model), options.link);
  search.apply_pins(recomputed);
  RecomputePlan plan = search.realise(chosen_attempt(search, recomputed, options));
  if (options.link) return plan;
  plan.bound_bytes = options.budget_bytes.value_or(plan.arena_bytes);
  plan.bound_seconds =
      TimeBound(plain, seconds, search.model(), lower.watch.stop).seconds_within(plan.bound_bytes);
  return plan;
}

}  // namespace trainscope
