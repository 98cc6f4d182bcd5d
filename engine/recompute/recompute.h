// Trades time for memory: chooses what a training step rematerializes, that is, computes a second
// time, so that its arena fits a budget or its time a limit.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/machine/machine.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"
#include "engine/recompute/clusters.h"
#include "engine/recompute/rematerialize.h"

namespace trainscope {

enum class RecomputeMode : std::uint8_t {
  kNone,
  kAuto,      // the planner: within `budget_bytes`, or the least memory within `max_overhead`
  kLevel1,    // every cluster of cheap ops (ONNX Runtime's layer-wise level)
  kLevel2,    // ... and those that keep something smaller instead (its compromise level)
  kClusters,  // those in `clusters`
};

struct RecomputeOptions {
  RecomputeMode mode = RecomputeMode::kNone;
  std::optional<std::int64_t> budget_bytes = {};  // of the whole arena
  std::optional<double> max_overhead = {};        // fraction of the step's time: 0.1 is 10 %
  std::vector<ClusterRequest> clusters = {};
  // Globs over the names of values: kept, or recomputed, whatever the planner would like. The
  // planner never recomputes what matches `keep`; of a value that matches both, `keep` wins.
  std::vector<std::string> keep = {};
  std::vector<std::string> recompute = {};
  // Set: the planner may also send values to host memory and fetch them for the backward phase.
  std::optional<HostLink> link = {};
};

// No plan is within the budget; kOutOfMemory.
struct NoPlanFits : Error {
  NoPlanFits(std::string message, std::int64_t least)
      : Error(ErrorCode::kOutOfMemory, std::move(message)), least_bytes(least) {}

  std::int64_t least_bytes = 0;  // the least budget for which a plan was found
};

class RecomputeSearch;

struct RecomputePlan {
  std::vector<Rematerialization> rematerializations;  // and fetches, of the program's graph
  RematerializedGraph graph = {};                     // with them
  std::int64_t host_bytes = 0;                        // of all values that go to host memory
  std::int64_t plain_bytes = 0;                       // arena without recomputation
  std::int64_t arena_bytes = 0;                       // with it
  double plain_seconds = 0.0;                         // of a step by the costs given
  double seconds = 0.0;
  // No step within `bound_bytes` (the budget, or the arena where none was given) is quicker without
  // host memory; 0: not known.
  double bound_seconds = 0.0;
  std::int64_t bound_bytes = 0;

  std::int64_t rematerialized_nodes() const;
};

// `plain` is the step without recomputation, `seconds` the time of each of its nodes by NodeId.
// Gradients stay the same bit for bit. Fails with NoPlanFits when no plan fits the budget, naming
// the least with a plan and the op that needs most; with kUsage for patterns without a match.
RecomputePlan plan_recompute(const Program& plain, std::span<const double> seconds,
                             const OpTable& ops, const RecomputeOptions& options,
                             const LowerOptions& lower);

// A plan by its placed arena and its time, for tables.
struct TradePoint {
  std::string method;  // "front", "level 1", ...
  std::int64_t arena_bytes = 0;
  double seconds = 0.0;
  std::int64_t rematerialized_nodes = 0;
  std::int64_t host_bytes = 0;
};
// Memory for time, by falling arena and rising time, the first without recomputation: of the
// planner's front, of what it finds for 100 budgets and more, and of levels 1 and 2, what no other
// beats. Placed at a glance: a program's arena may be lower by up to half a percent. Of `options`
// the pins and the link count, here and below; what is pinned to `recompute` is recomputed in every
// plan.
std::vector<TradePoint> recompute_front(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower,
                                        const RecomputeOptions& options = {});

// Plans for budgets that follow each other quickly, as a slider asks for them.
class RecomputeSlider {
 public:
  RecomputeSlider(const Program& plain, std::span<const double> seconds, const OpTable& ops,
                  const LowerOptions& lower, const RecomputeOptions& options = {});
  ~RecomputeSlider();

  // As recompute_front(), and what was found since, but without the 100 budgets; made by the first
  // call of any.
  std::vector<TradePoint> front();
  // The quickest plan known whose arena is within the budget, or what a greedy search makes of it,
  // which ends after so many seconds with what it has (at 0 it is not begun). At any time a larger
  // budget gets no slower a plan. None when nothing known fits.
  std::optional<TradePoint> point_within(std::int64_t budget_bytes,
                                         double seconds = std::numeric_limits<double>::infinity());
  // ... with its graph, which takes longer.
  std::optional<RecomputePlan> plan_within(
      std::int64_t budget_bytes, double seconds = std::numeric_limits<double>::infinity());

 private:
  std::unique_ptr<RecomputeSearch> search_;
};

// Levels 1 and 2, the square root of n checkpoints (Chen et al. 2016), and PyTorch's knapsack over
// saved bytes at 25, 50, 75 and 100 % of them, each followed by the planner's plan at most as large
// ("planner"). All keep to the pins, the planner alone uses the link.
std::vector<TradePoint> compare_methods(const Program& plain, std::span<const double> seconds,
                                        const OpTable& ops, const LowerOptions& lower,
                                        const RecomputeOptions& options = {});

// What one cluster would do alone, all its places at once, on top of what is pinned.
struct Opportunity {
  std::string id;
  ClusterKind kind = ClusterKind::kRecompute;
  std::int64_t places = 0;
  std::int64_t saved_bytes = 0;       // of the values: what ONNX Runtime's table shows
  std::int64_t peak_saved_bytes = 0;  // of the placed arena; negative where it grows
  double seconds = 0.0;               // more time a step
};
// By bytes saved, largest first; none of which the pins leave nothing.
std::vector<Opportunity> recompute_opportunities(const Program& plain,
                                                 std::span<const double> seconds,
                                                 const OpTable& ops, const LowerOptions& lower,
                                                 const RecomputeOptions& options = {});

}  // namespace trainscope
