// The search for one budget: several plans side by side, each repaired, filled and annealed.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/deadline.h"
#include "memplan/remat/bit_rows.h"
#include "memplan/remat/graph.h"
#include "memplan/remat/retention.h"
#include "memplan/remat/search.h"

namespace trainscope::memplan {

// A plan of the search: one that keeps the budget has no excess.
struct RematDraft {
  BitRows holds = {};
  RematCost cost = {};
  std::int64_t peak_bytes = 0;

  bool keeps_budget() const { return cost.excess_bytes == 0; }
};

class RematPortfolio {
 public:
  RematPortfolio(const RematGraph& graph, std::int64_t budget_bytes, Deadline deadline);

  // What repair and filling make of this plan is one of the drafts.
  void add(BitRows holds);
  // Rounds of annealing, until they are in vain or a plan is close to the bound on the time.
  void anneal(double bound);
  // Needs one that was added.
  const RematDraft& best() const { return drafts_.front(); }

 private:
  void round(const AnnealOptions& options, double enough);
  RematDraft draft() const;
  void keep_best();
  bool done(double enough) const;

  const RematGraph& graph_;
  Retention state_;
  Deadline deadline_;
  double mean_time_ = 0;
  std::int64_t holds_ = 0;  // stages in which values can be held, summed over the values
  std::uint64_t next_seed_ = 1;
  std::vector<RematDraft> drafts_;  // the best first
};

}  // namespace trainscope::memplan
