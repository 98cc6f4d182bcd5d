// The planner's state: which values stay in memory from one first execution to the next. All else
// follows.
//
// Stage t lasts from the first execution of node t-1 to that of node t. `held(v, t)` says that v is
// in memory when stage t begins. Stage t then runs, in the order of the problem, node t, what it
// needs and has not, and what stage t+1 begins with and has not (Checkmate's S and R: Jain et al.
// 2020). So time and peak of a stage depend on two columns only, and a change is evaluated where it
// happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "memplan/remat/bit_rows.h"
#include "memplan/remat/graph.h"
#include "memplan/remat/node_set.h"
#include "memplan/remat/plan.h"

namespace trainscope::memplan {

// Inverts held(node, t) for t in first..last, which must all be equal before.
struct HoldChange {
  std::int32_t node = 0;
  std::int32_t first = 0;
  std::int32_t last = 0;
};

// What a plan costs: time, and bytes above the budget summed over the stages.
struct RematCost {
  double time = 0;
  std::int64_t excess_bytes = 0;
};

// How much more a change may cost in time + byte_price * excess, and in time alone.
struct RematLimit {
  double byte_price = 0;  // time per byte
  double most_cost = 0;
  double most_time = 0;
};

class Retention {
 public:
  Retention(const RematGraph& graph, std::int64_t budget_bytes);

  // Starts from any matrix of held(v, t), t in v+1..n-1.
  void load(BitRows held);
  const BitRows& matrix() const { return held_; }

  const RematGraph& graph() const { return graph_; }
  std::int64_t budget_bytes() const { return budget_bytes_; }
  void set_budget(std::int64_t budget_bytes);
  const RematCost& cost() const { return cost_; }
  std::int64_t peak_bytes() const;
  std::int64_t peak_bytes(std::int32_t stage) const {
    return peak_bytes_[static_cast<std::size_t>(stage)];
  }
  std::int32_t worst_stage() const;  // the first one with the peak

  bool held(std::int32_t node, std::int32_t stage) const { return held_.test(node, stage); }
  // Whether the stage runs the value's node or reads the value.
  bool touched(std::int32_t node, std::int32_t stage) const { return touched_.test(node, stage); }
  bool ran(std::int32_t node, std::int32_t stage) const {
    const auto& executed = stages_[static_cast<std::size_t>(stage)].executions;
    return std::binary_search(executed.begin(), executed.end(), node);
  }
  std::int32_t next_touch(std::int32_t node, std::int32_t stage) const {
    return touched_.next_set(node, stage);
  }
  std::int32_t previous_touch(std::int32_t node, std::int32_t stage) const {
    return touched_.previous_set(node, stage);
  }
  // Of a stage with held(node, stage): the last of the stages until which it stays.
  std::int32_t end_of_hold(std::int32_t node, std::int32_t stage) const {
    return held_.next_clear(node, stage) - 1;
  }
  // The nodes that the stage executes, in order.
  std::span<const std::int32_t> executions(std::int32_t stage) const {
    return stages_[static_cast<std::size_t>(stage)].executions;
  }

  // What the changes, one after the other, would make of the cost. Then accept() or reject() them,
  // before anything else.
  RematCost propose(std::span<const HoldChange> changes);
  RematCost propose(const HoldChange& change) { return propose({&change, 1}); }
  void reject();
  // The same, but rejects by itself what goes over the limit, and says whether it did not. Most
  // such changes it knows before it has looked at any byte.
  bool propose(std::span<const HoldChange> changes, const RematLimit& limit);
  // Also gives up every hold that nobody reads any more.
  void accept();

  // What is held now can be had again, from marked(), until the next mark() or load().
  void mark() { adopted_.clear(); }
  BitRows marked() const;

  RematPlan plan() const;

 private:
  // Stages whose highest peak is known are passed over together while it stays within the budget.
  static constexpr std::int32_t kBlock = 16;

  struct Stage {
    double time = 0;
    std::int64_t extra_bytes = 0;  // peak less what is held when the stage begins
    std::vector<std::int32_t> executions;
    std::vector<std::int32_t> touched;
  };
  // By how much a change moves what is held in the stages first..last.
  struct Shift {
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int64_t bytes = 0;
  };
  // A hold that may end later than its value is read.
  struct HoldEnd {
    std::int32_t node = 0;
    std::int32_t stage = 0;
  };

  std::int64_t excess(std::int64_t peak) const {
    return peak > budget_bytes_ ? peak - budget_bytes_ : 0;
  }
  void toggle(const HoldChange& change);
  void toggle_start(std::int32_t stage, std::int32_t node);
  bool find_executions(std::int32_t stage, double most_time, Stage& out);
  void find_peak(std::int32_t stage, Stage& out);
  void add_fresh(std::int32_t stage);
  void add_noticing(const HoldChange& change);
  bool change_time(std::span<const HoldChange> changes, double most);
  std::int64_t shift_bytes(std::int32_t stage) const;
  void sum_up_blocks(std::int32_t first_stage, std::int32_t last_stage);
  void change_excess_between();
  void change_fresh_excess();
  void adopt();
  void adopt(std::int32_t stage, Stage& fresh);
  void trim();
  void forget_useless(const HoldEnd& end);

  const RematGraph& graph_;
  std::int64_t budget_bytes_;
  BitRows held_;
  BitRows touched_;
  std::vector<std::vector<std::int32_t>> starts_;  // by stage: held after it, not before
  std::vector<std::int64_t> held_bytes_;           // by stage, when it begins
  std::vector<std::int64_t> peak_bytes_;           // by stage
  std::vector<std::int64_t> block_peak_;           // of kBlock stages each
  std::vector<Stage> stages_;
  RematCost cost_;
  std::vector<HoldChange> adopted_;  // since mark() or load()

  // The changes under way.
  std::vector<HoldChange> proposed_;
  RematCost proposed_cost_;
  std::int32_t first_changed_ = 0;  // the stages whose held bytes change
  std::int32_t last_changed_ = -1;
  std::vector<Shift> shifts_;
  std::vector<std::int32_t> fresh_stages_;
  std::vector<Stage> fresh_;  // its first fresh_stages_.size() are in use
  std::vector<HoldEnd> maybe_useless_;

  // Scratch.
  NodeSet needed_;
  std::vector<std::uint32_t> touch_mark_;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> fresh_mark_;  // by stage
  std::uint32_t fresh_epoch_ = 0;
  std::vector<std::int32_t> last_use_;
};

}  // namespace trainscope::memplan
