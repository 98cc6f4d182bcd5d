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

// Budgets given to the planner, evenly between the least and the plain peak.
constexpr int kGrid = 16;
constexpr int kRefinements = 4;

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

  RecomputePlan realise(std::span<const int> order, double bound_seconds = 0.0) {
    RecomputePlan plan = nothing();
    plan.repeats = repeats_of(plain_.graph, model_, order);
    plan.graph = with_repeats(plain_.graph, ops_, plan.repeats);
    plan.arena_bytes = arena_with(plain_, plan.graph, lower_);
    plan.seconds = 0;
    for (int unit : order) plan.seconds += model_.units[static_cast<std::size_t>(unit)].seconds;
    plan.bound_seconds = bound_seconds;
    known_.push_back({.order = {order.begin(), order.end()},
                      .arena_bytes = plan.arena_bytes,
                      .seconds = plan.seconds,
                      .bound_seconds = bound_seconds,
                      .repeats = static_cast<std::int64_t>(plan.repeats.size())});
    return plan;
  }

  // The quickest plan found whose arena is within the budget.
  RecomputePlan within(std::int64_t budget_bytes) {
    RecomputePlan least_time = as_pinned();
    if (least_time.arena_bytes <= budget_bytes) return least_time;
    explore(budget_bytes);
    try_families(budget_bytes);
    const Known* best = nullptr;
    for (const Known& known : known_) {
      const bool fits = known.arena_bytes <= budget_bytes;
      if (fits && (best == nullptr || known.seconds < best->seconds)) best = &known;
    }
    if (best == nullptr) refuse(budget_bytes);
    const Known chosen = *best;  // realising adds to the list
    return realise(chosen.order, chosen.bound_seconds);
  }

  // With what must run again alone.
  RecomputePlan as_pinned() {
    std::vector<bool> again(model_.units.size(), false);
    apply_pins(again);
    return std::ranges::find(again, true) == again.end() ? nothing()
                                                         : realise(on_demand_order(model_, again));
  }

  // Everything that is tried whatever the budget, by falling arena and rising time.
  std::vector<TradePoint> front() {
    for (const UnitSets& sets : families_) {
      for (const std::vector<bool>& again : sets) realise(on_demand_order(model_, again));
    }
    for (int i = 1; i < kGrid; ++i) arena_at(grid_budget(i));
    std::ranges::sort(known_, {},
                      [](const Known& k) { return std::pair(k.seconds, k.arena_bytes); });
    std::vector<TradePoint> front = {point("front", nothing())};
    for (const Known& known : known_) {
      if (known.arena_bytes >= front.back().arena_bytes) continue;
      front.push_back({.method = "front",
                       .arena_bytes = known.arena_bytes,
                       .seconds = known.seconds,
                       .repeats = known.repeats});
    }
    return front;
  }

  // The least arena found whose time is within the share.
  RecomputePlan quicker_than(double max_overhead) {
    const double most = model_.seconds * (1.0 + max_overhead);
    RecomputePlan least_time = as_pinned();
    std::int64_t low = planner_.least_bytes();
    std::int64_t high = planner_.plain_peak_bytes();
    constexpr int kAttempts = 10;
    for (int attempt = 0; attempt < kAttempts && low < high; ++attempt) {
      const std::int64_t middle = low + (high - low) / 2;
      const std::optional<PlannedOrder> planned = planner_.plan(middle);
      const bool quick = planned && planned->seconds <= most;
      (quick ? high : low) = middle;
      if (quick) realise(planned->order);
    }
    const Known* best = nullptr;
    for (const Known& known : known_) {
      const bool less = best == nullptr || known.arena_bytes < best->arena_bytes;
      const bool saves = known.arena_bytes < least_time.arena_bytes;
      if (known.seconds <= most && less && saves) best = &known;
    }
    if (best == nullptr) return least_time;
    const Known chosen = *best;
    return realise(chosen.order);
  }

 private:
  // A plan that was realised: its arena is known.
  struct Known {
    std::vector<int> order;
    std::int64_t arena_bytes = 0;
    double seconds = 0.0;
    double bound_seconds = 0.0;
    std::int64_t repeats = 0;
  };

  std::int64_t grid_budget(int i) const {
    const std::int64_t range = planner_.plain_peak_bytes() - planner_.least_bytes();
    return planner_.plain_peak_bytes() - range / kGrid * i;
  }

  // The arena of the planner's plan for so many bytes of the model; none when it finds no plan.
  std::optional<std::int64_t> arena_at(std::int64_t model_bytes) {
    const std::optional<PlannedOrder> planned = planner_.plan(model_bytes);
    if (!planned) return std::nullopt;
    return realise(planned->order, planned->bound_seconds).arena_bytes;
  }

  // The model's bytes and the arena differ by alignment, results in place, and gaps. So the planner
  // is asked for less and less until its plans fit twice in a row, then for what lies between the
  // last that did not and the first that did.
  void explore(std::int64_t budget_bytes) {
    const std::int64_t unseen = plain_.arena_bytes - planner_.plain_peak_bytes();
    const std::int64_t step = (planner_.plain_peak_bytes() - planner_.least_bytes()) / kGrid;
    std::optional<std::int64_t> fits;
    std::optional<std::int64_t> too_much;
    int in_a_row = 0;
    for (int i = 1; i <= kGrid && in_a_row < 2; ++i) {
      const std::int64_t model_bytes = grid_budget(i);
      if (model_bytes > budget_bytes - unseen + step) {
        too_much = model_bytes;
        continue;
      }
      const std::optional<std::int64_t> arena = arena_at(model_bytes);
      const bool fit = arena && *arena <= budget_bytes;
      in_a_row = fit ? in_a_row + 1 : 0;
      if (fit && !fits) fits = model_bytes;
      if (!fit && !fits) too_much = model_bytes;
    }
    for (int i = 0; i < kRefinements && fits && too_much; ++i) {
      const std::int64_t middle = *fits + (*too_much - *fits) / 2;
      const std::optional<std::int64_t> arena = arena_at(middle);
      (arena && *arena <= budget_bytes ? fits : too_much) = middle;
    }
  }

  using UnitSets = std::vector<std::vector<bool>>;

  // Other methods know of no pins.
  void apply_pins(std::vector<bool>& again) const {
    for (std::size_t i = 0; i < again.size(); ++i) {
      again[i] = (again[i] || model_.units[i].again) && !model_.units[i].pinned;
    }
  }

  // Families of plans in which nothing runs more than twice, each by rising time.
  std::vector<UnitSets> families() const {
    const std::vector<Cluster> clusters = find_clusters(plain_.graph, model_);
    std::vector<UnitSets> list = {planner_.front(),
                                  planner_.baseline("knapsack"),
                                  planner_.baseline("sqrt_n"),
                                  {level_units(model_, clusters, 1)},
                                  {level_units(model_, clusters, 2)}};
    for (UnitSets& sets : list) {
      for (std::vector<bool>& again : sets) apply_pins(again);
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

  // More time is less memory in a family, nearly: after the bisection a few quicker plans are tried
  // too.
  void try_families(std::int64_t budget_bytes) {
    constexpr std::ptrdiff_t kNeighbours = 4;
    for (const UnitSets& sets : families_) {
      const auto fits = [&](const std::vector<bool>& again) {
        return realise(on_demand_order(model_, again)).arena_bytes <= budget_bytes;
      };
      auto first = std::ranges::partition_point(
          sets, [&fits](const std::vector<bool>& again) { return !fits(again); });
      for (auto n = std::min(kNeighbours, first - sets.begin()); n > 0; --n) fits(*--first);
    }
  }

  // The least arena for which a plan is found at all.
  std::int64_t least_arena() {
    std::int64_t without = planner_.least_bytes();
    std::int64_t with = planner_.plain_peak_bytes();
    for (int i = 0; i < 2 * kRefinements; ++i) {
      const std::int64_t middle = without + (with - without) / 2;
      (arena_at(middle) ? with : without) = middle;
    }
    for (const UnitSets& sets : families_) {
      for (const std::vector<bool>& again : sets) realise(on_demand_order(model_, again));
    }
    return std::ranges::min(known_, {}, &Known::arena_bytes).arena_bytes;
  }

  [[noreturn]] void refuse(std::int64_t budget_bytes) {
    const StepUnit& unit = model_.units[static_cast<std::size_t>(planner_.hungriest_unit())];
    const Node& node = plain_.graph.node(unit.nodes.front());
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("no plan was found for {} bytes: most are needed by node '{}' ({}), its "
                    "inputs, outputs and workspace, beside {} bytes of parameters and states",
                    budget_bytes, printable(node.name), node.op->name, model_.fixed_bytes))
        .hint(fmt::format("the least budget with a plan is {} bytes; a smaller batch needs less",
                          std::min(plain_.arena_bytes, least_arena())));
  }

  const Program& plain_;
  const OpTable& ops_;
  const LowerOptions& lower_;
  StepModel model_;
  RecomputePlanner planner_;
  std::vector<UnitSets> families_;
  std::vector<Known> known_;
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
  return Search(plain, ops, lower, step_model(plain, seconds)).front();
}

std::vector<TradePoint> compare_methods(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower) {
  Search search(plain, ops, lower, step_model(plain, seconds));
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
  Search search(plain, ops, lower, step_model(plain, seconds));
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
  Search search(plain, ops, lower, std::move(model));
  if (options.mode == RecomputeMode::kNone) return search.nothing();
  if (options.mode != RecomputeMode::kAuto) {
    return search.realise(on_demand_order(search.model(), again));
  }
  if (options.budget_bytes) return search.within(*options.budget_bytes);
  return search.quicker_than(options.max_overhead.value_or(0.0));
}

}  // namespace trainscope
