// The search for plans of rematerialization on the placed arena: every plan that was tried is kept,
// and questions are answered from all of them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/recompute/placed_step.h"
#include "engine/recompute/planner.h"
#include "engine/recompute/recompute.h"
#include "engine/recompute/step_model.h"

namespace trainscope {

// An order of units, and what it comes to.
struct Attempt {
  UnitOrder order;
  std::int64_t arena_bytes = 0;  // at a glance: the program's, or a little more
  std::int64_t bound_bytes = 0;  // the program's are not below it
  double seconds = 0.0;
  std::int64_t rematerialized_nodes = 0;
  std::int64_t host_bytes = 0;
  std::string_view method = {};  // that laid it out
};

class RecomputeSearch {
 public:
  // `plain` is the step without recomputation, `ops` the table of its ops.
  RecomputeSearch(const Program& plain, const OpTable& ops, const LowerOptions& lower,
                  StepModel model, std::optional<HostLink> link = {});

  const StepModel& model() const { return model_; }
  const RecomputePlanner& planner() const { return planner_; }
  // Marks what must be recomputed, and no longer what must not: other methods know of no pins.
  void apply_pins(std::vector<bool>& recomputed) const;

  // Recomputes the units marked, and what they need of others marked, when the backward phase first
  // reads them. Placed as the program would be.
  Attempt on_demand(const std::vector<bool>& recomputed);
  // With what must be recomputed, and nothing else.
  Attempt as_pinned();
  // The quickest found whose arena is within the budget. Fails with NoPlanFits.
  Attempt within(std::int64_t budget_bytes);
  // The least arena found whose time is within this fraction more. Fails with kUsage when what must
  // be recomputed takes more.
  Attempt quicker_than(double max_overhead);
  // Everything that is tried whatever the budget: what no other beats, by falling arena and rising
  // time, the first without recomputation.
  std::vector<Attempt> front();
  // Tries more for it, which takes several times as long.
  void refine_front();
  // For budgets in quick succession: the quickest of all that was tried, the front included, or of
  // what a greedy search makes of it in so many seconds; what it finds is placed closely where
  // there is time left. Empty: nothing fits.
  std::optional<Attempt> nearby(std::int64_t budget_bytes,
                                double seconds = std::numeric_limits<double>::infinity());

  RecomputePlan realise(const Attempt& attempt) const;

 private:
  using UnitSets = std::vector<std::vector<bool>>;
  static constexpr std::int64_t kNoBudget = -1;

  struct Unplaced {
    UnitOrder order;
  };
  // Where a glance is not enough.
  struct Closeness {
    bool as_program = false;                // never
    std::int64_t budget_bytes = kNoBudget;  // if it leaves open whether the plan fits
    std::string_view first = {};            // method that served a neighbour
  };

  Unplaced when_needed(const std::vector<bool>& recomputed) const;
  double transfer_seconds(const StepUnit& unit) const;
  void add_costs(Attempt& attempt) const;
  Attempt place(Unplaced unplaced, const Closeness& closeness) const;
  const Attempt& attempt(Unplaced unplaced, const Closeness& closeness);
  void place_as_program(Attempt& attempt) const;
  void glance_at(std::vector<Unplaced> list);
  std::optional<std::int64_t> arena_at(std::int64_t model_bytes, memplan::RematEffort effort,
                                       const Closeness& closeness);
  const Attempt* best_within(std::int64_t budget_bytes) const;
  const Attempt& least_arena(double most_seconds);
  std::vector<const Attempt*> unbeaten() const;
  void place_front();
  void ask_greedy(std::span<const std::int64_t> budgets, std::map<std::int64_t, double>& asked);
  void try_always();
  void explore(std::int64_t budget_bytes);
  void settle(std::int64_t budget_bytes);
  const std::vector<UnitSets>& families();
  std::vector<int> offload_candidates(const std::vector<bool>& recomputed) const;
  std::vector<std::vector<bool>> offload_bases();
  Unplaced with_offload(const std::vector<bool>& recomputed, std::span<const int> in_host) const;
  void try_offload(std::int64_t budget_bytes);
  void try_offload_within(double most_seconds);
  void try_offload_everywhere();
  void try_deepest();
  [[noreturn]] void refuse(std::int64_t budget_bytes);

  const Graph graph_;
  const SpacePlan plain_arena_;
  const OpTable& ops_;
  StepModel model_;
  int threads_;
  Watch watch_;
  PlacedStep placed_;
  RecomputePlanner planner_;
  std::optional<HostLink> link_;
  std::vector<UnitSets> families_;  // empty until asked for
  std::vector<Attempt> tried_;
  std::map<std::int64_t, double> searched_nearby_;  // by budget, the most seconds given to it
  bool front_placed_ = false;
  bool front_refined_ = false;
};

}  // namespace trainscope
