// From a step and a wish to repeats: pins, levels, and the planner's search on the placed height.
#include "engine/recompute/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/recompute/planner.h"
#include "engine/recompute/step_model.h"

namespace trainscope {
namespace {

constexpr int kMostAttempts = 10;
// Close enough: this share of what lies between the least and the plain height.
constexpr double kSlack = 0.004;

class Search {
 public:
  Search(const Program& plain, const OpTable& ops, const LowerOptions& lower, StepModel model)
      : plain_(plain),
        ops_(ops),
        lower_(lower),
        model_(std::move(model)),
        planner_(model_),
        families_(families()) {}

  const StepModel& model() const { return model_; }
  const RecomputePlanner& planner() const { return planner_; }

  TradePoint point(std::string method, const RecomputePlan& plan) const {
    return {.method = std::move(method),
            .arena_bytes = plan.arena_bytes,
            .seconds = plan.seconds,
            .repeats = static_cast<std::int64_t>(plan.repeats.size())};
  }
  RecomputePlan nothing() const {
    return {.repeats = {},
            .graph = with_repeats(plain_.graph, ops_, {}),
            .plain_bytes = plain_.arena_bytes,
            .arena_bytes = plain_.arena_bytes,
            .plain_seconds = model_.seconds,
            .seconds = model_.seconds};
  }

  RecomputePlan realise(std::span<const int> order) const {
    RecomputePlan plan = nothing();
    plan.repeats = repeats_of(plain_.graph, model_, order);
    plan.graph = with_repeats(plain_.graph, ops_, plan.repeats);
    plan.arena_bytes = arena_with(plain_, plan.graph, lower_);
    plan.seconds = 0;
    for (int unit : order) plan.seconds += model_.units[static_cast<std::size_t>(unit)].seconds;
    return plan;
  }

  // The quickest plan found whose arena is within the budget.
  RecomputePlan within(std::int64_t budget_bytes) const {
    if (plain_.arena_bytes <= budget_bytes) return nothing();
    std::optional<RecomputePlan> best = search_within(budget_bytes);
    std::optional<RecomputePlan> simple = simple_within(budget_bytes);
    if (!best && !simple) refuse(budget_bytes);
    if (!best) return std::move(*simple);
    return simple && simple->seconds < best->seconds ? std::move(*simple) : std::move(*best);
  }

  // The least arena found whose time is within the share.
  RecomputePlan quicker_than(double max_overhead) const {
    const double most = model_.seconds * (1.0 + max_overhead);
    RecomputePlan best = nothing();
    std::int64_t low = planner_.least_bytes();
    std::int64_t high = planner_.plain_peak_bytes();
    for (int attempt = 0; attempt < kMostAttempts && low < high; ++attempt) {
      const std::int64_t budget = low + (high - low) / 2;
      const std::optional<PlannedOrder> planned = planner_.plan(budget);
      const bool quick = planned && planned->seconds <= most;
      (quick ? high : low) = budget;
      if (!quick) continue;
      RecomputePlan plan = realise(planned->order);
      if (plan.arena_bytes < best.arena_bytes) best = std::move(plan);
    }
    return best;
  }

 private:
  // The model's bytes and the arena differ by alignment, results in place, and gaps. So the budget
  // given to the planner is moved until the arena fits, and not by much more than it must.
  std::optional<RecomputePlan> search_within(std::int64_t budget_bytes) const {
    const std::int64_t unseen = plain_.arena_bytes - planner_.plain_peak_bytes();
    const auto slack = static_cast<std::int64_t>(
        kSlack * static_cast<double>(planner_.plain_peak_bytes() - planner_.least_bytes()));
    std::optional<RecomputePlan> best;
    std::optional<std::int64_t> fits;      // budgets given to the planner
    std::optional<std::int64_t> too_much;  // ... whose plans do not fit
    std::int64_t budget = budget_bytes - unseen;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      budget = std::max(budget, planner_.least_bytes());
      std::int64_t over = 0;
      const std::optional<PlannedOrder> planned = planner_.plan(budget);
      if (planned) {
        RecomputePlan plan = realise(planned->order);
        plan.bound_seconds = planned->bound_seconds;
        over = plan.arena_bytes - budget_bytes;
        if (over <= 0 && (!best || plan.seconds < best->seconds)) best = std::move(plan);
      }
      // Below a budget for which nothing is found, nothing is looked for.
      const bool lower = planned && over > 0;
      (lower ? too_much : fits) = budget;
      if (lower && budget == planner_.least_bytes()) break;
      if (fits && too_much && *too_much - *fits <= slack) break;
      if (!lower && planned && -over <= slack) break;
      if (fits && too_much) {
        budget = *fits + (*too_much - *fits) / 2;
      } else {
        budget = planned ? budget - over : budget + (planner_.plain_peak_bytes() - budget) / 2;
      }
    }
    return best;
  }

  using UnitSets = std::vector<std::vector<bool>>;

  // Families of plans in which nothing runs more than twice, each by rising time.
  std::vector<UnitSets> families() const {
    const std::vector<Cluster> clusters = find_clusters(plain_.graph, model_);
    std::vector<UnitSets> list = {planner_.front(),
                                  planner_.baseline("knapsack"),
                                  planner_.baseline("sqrt_n"),
                                  {level_units(model_, clusters, 1)},
                                  {level_units(model_, clusters, 2)}};
    for (UnitSets& sets : list) {
      std::ranges::stable_sort(sets, {}, [this](const std::vector<bool>& again) {
        double seconds = 0;
        for (std::size_t i = 0; i < again.size(); ++i) {
          if (again[i]) seconds += model_.units[i].seconds;
        }
        return seconds;
      });
    }
    return list;
  }

  // The quickest of them within the budget. More time is less memory in a family, nearly: after the
  // bisection a few quicker plans are tried too.
  std::optional<RecomputePlan> simple_within(std::int64_t budget_bytes) const {
    constexpr std::ptrdiff_t kNeighbours = 4;
    std::optional<RecomputePlan> best;
    for (const UnitSets& sets : families_) {
      const auto fits = [&](const std::vector<bool>& again) {
        RecomputePlan plan = realise(on_demand_order(model_, again));
        const bool within = plan.arena_bytes <= budget_bytes;
        if (within && (!best || plan.seconds < best->seconds)) best = std::move(plan);
        return within;
      };
      auto first = std::ranges::partition_point(
          sets, [&fits](const std::vector<bool>& again) { return !fits(again); });
      for (auto n = std::min(kNeighbours, first - sets.begin()); n > 0; --n) fits(*--first);
    }
    return best;
  }

  [[noreturn]] void refuse(std::int64_t budget_bytes) const {
    const StepUnit& unit = model_.units[static_cast<std::size_t>(planner_.hungriest_unit())];
    const Node& node = plain_.graph.node(unit.nodes.front());
    const std::int64_t least =
        planner_.least_bytes() + plain_.arena_bytes - planner_.plain_peak_bytes();
    if (budget_bytes >= least) {
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("no plan of {} bytes was found; node '{}' ({}) needs most",
                              budget_bytes, printable(node.name), node.op->name))
          .hint("a larger --memory-budget, or a smaller batch");
    }
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("no plan fits {} bytes: node '{}' ({}) alone needs its inputs, outputs "
                            "and workspace beside {} bytes of parameters and states",
                            budget_bytes, printable(node.name), node.op->name, model_.fixed_bytes))
        .hint(fmt::format("the least workable budget is about {} bytes; a smaller batch needs less",
                          least));
  }

  const Program& plain_;
  const OpTable& ops_;
  const LowerOptions& lower_;
  StepModel model_;
  RecomputePlanner planner_;
  std::vector<UnitSets> families_;
};

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

}  // namespace

std::int64_t arena_with(const Program& plain, const RepeatedGraph& graph,
                        const LowerOptions& lower) {
  std::vector<std::int64_t> workspace_of(plain.graph.node_capacity(), 0);
  for (const Instruction& instruction : plain.instructions) {
    workspace_of[static_cast<std::size_t>(instruction.node)] =
        static_cast<std::int64_t>(instruction.prepared.workspace_bytes);
  }
  const std::vector<NodeId> order = phase_order(graph.graph);
  std::vector<std::int64_t> workspaces;
  for (NodeId id : order) {
    if (graph.graph.node(id).op->is_view) continue;
    const NodeId origin = graph.origin[static_cast<std::size_t>(id)];
    workspaces.push_back(workspace_of[static_cast<std::size_t>(origin)]);
  }
  const memplan::Result placed =
      memplan::solve(placement_problem(find_lifetimes(graph.graph, order, lower), workspaces),
                     {.seconds = lower.seconds, .threads = lower.threads});
  CHECK_INVARIANT(placed.status == memplan::Status::kPlaced);
  return placed.solution.height_bytes;
}

std::vector<TradePoint> recompute_front(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower) {
  const Search search(plain, ops, lower, step_model(plain, seconds));
  std::vector<TradePoint> all;
  for (const std::vector<bool>& again : search.planner().front()) {
    all.push_back(search.point("front", search.realise(on_demand_order(search.model(), again))));
  }
  std::ranges::sort(all, {},
                    [](const TradePoint& p) { return std::pair(p.seconds, p.arena_bytes); });
  std::vector<TradePoint> front;
  for (TradePoint& point : all) {
    const bool beaten = !front.empty() && point.arena_bytes >= front.back().arena_bytes;
    if (!beaten) front.push_back(std::move(point));
  }
  return front;
}

std::vector<TradePoint> compare_methods(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower) {
  const Search search(plain, ops, lower, step_model(plain, seconds));
  std::vector<TradePoint> points = {search.point("none", search.nothing())};
  const auto add = [&](std::string method, const std::vector<bool>& again) {
    const RecomputePlan plan = search.realise(on_demand_order(search.model(), again));
    points.push_back(search.point(std::move(method), plan));
    points.push_back(search.point("planner", search.within(plan.arena_bytes)));
  };
  const std::vector<Cluster> clusters = find_clusters(plain.graph, search.model());
  for (int level : {1, 2}) {
    add(fmt::format("level {}", level), level_units(search.model(), clusters, level));
  }
  for (const std::vector<bool>& again : search.planner().baseline("sqrt_n")) add("sqrt(n)", again);
  const std::vector<std::vector<bool>> shares = search.planner().baseline("knapsack");
  for (std::size_t percent : {75, 50, 25, 0}) {
    if (percent < shares.size()) add(fmt::format("knapsack {} %", percent), shares[percent]);
  }
  return points;
}

std::vector<Opportunity> recompute_opportunities(const Program& plain,
                                                 std::span<const double> seconds,
                                                 const OpTable& ops, const LowerOptions& lower) {
  const Search search(plain, ops, lower, step_model(plain, seconds));
  const std::vector<Cluster> clusters = find_clusters(plain.graph, search.model());
  std::vector<Opportunity> list;
  for (const Cluster& cluster : clusters) {
    std::vector<bool> again(search.model().units.size(), false);
    Opportunity row{.id = cluster.id, .kind = cluster.kind};
    for (const ClusterUse& use : cluster.uses) {
      ++row.places;
      row.saved_bytes += use.saved_bytes;
      for (int unit : use.again) again[static_cast<std::size_t>(unit)] = true;
    }
    const RecomputePlan plan = search.realise(on_demand_order(search.model(), again));
    row.peak_saved_bytes = plan.plain_bytes - plan.arena_bytes;
    row.seconds = plan.seconds - plan.plain_seconds;
    list.push_back(std::move(row));
  }
  return list;
}

RecomputePlan plan_recompute(const Program& plain, std::span<const double> seconds,
                             const OpTable& ops, const RecomputeOptions& options,
                             const LowerOptions& lower) {
  StepModel model = step_model(plain, seconds);
  const std::vector<bool> keep = matching_units(plain.graph, model, options.keep);
  std::vector<bool> again = matching_units(plain.graph, model, options.again);
  const std::vector<bool> chosen = chosen_units(plain.graph, model, options);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    again[i] = (again[i] || chosen[i]) && !keep[i];
    model.units[i].pinned = keep[i];
    model.units[i].again = again[i];
  }
  const Search search(plain, ops, lower, std::move(model));
  if (options.mode == RecomputeMode::kNone) return search.nothing();
  if (options.mode != RecomputeMode::kAuto) {
    return search.realise(on_demand_order(search.model(), again));
  }
  if (options.budget_bytes) return search.within(*options.budget_bytes);
  return search.quicker_than(options.max_overhead.value_or(0.0));
}

}  // namespace trainscope
