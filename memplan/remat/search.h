// Local search over what is held: each change is of one range of stages of one value.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "memplan/deadline.h"
#include "memplan/remat/random.h"
#include "memplan/remat/retention.h"

namespace trainscope::memplan {

struct AnnealOptions {
  std::int64_t iterations = 0;
  double first_temperature = 0;  // a loss of this much time is accepted with probability 1/e
  double last_temperature = 0;   // ... at the end
};

class RematSearch {
 public:
  RematSearch(Retention& state, std::uint64_t seed, Deadline deadline);

  // Gives up holds, the cheapest in time per byte of excess first, until the budget is kept; false
  // if nothing helps any more, or after kMostLooks changes looked at: a second or two.
  bool repair();
  // Adds holds that save time within the budget until none is left.
  void fill();
  // Simulated annealing (Kirkpatrick et al. 1983) on time + price * excess. The price follows the
  // search: it rises while the budget is broken and falls while it is kept, so that the search
  // stays at the edge. Leaves the best state within the budget, if it saw one.
  void anneal(const AnnealOptions& options);

  // Throws Stopped when the graph's searches are asked to stop.
  bool out_of_time() const;

 private:
  static constexpr std::int64_t kMostLooks = 1'000'000;

  struct Candidate {
    HoldChange change = {};
    RematCost cost = {};
  };

  void choose_changes();
  std::int32_t random_node();
  void add(const HoldChange& change);
  void random_drop(std::int32_t node, std::int32_t stage);
  void random_hold(std::int32_t node, std::int32_t stage);
  void hold_inputs(std::int32_t node, std::int32_t stage);
  void release_inputs(std::int32_t node, std::int32_t stage);
  std::int32_t last_chance(std::int32_t node, std::int32_t stage) const;
  void consider(const HoldChange& change, std::optional<Candidate>& best);
  void consider_drops(std::int32_t stage, std::optional<Candidate>& best);
  void consider_holds(std::int32_t stage, std::optional<Candidate>& best);
  std::optional<Candidate> refill(std::int32_t node, std::int32_t stage);
  std::vector<Candidate> refills();
  bool better(const Candidate& a, const Candidate& b) const;
  bool forbidden(const RematCost& cost) const;
  double first_price() const;
  void remember();

  Retention& state_;
  const RematGraph& graph_;
  Random random_;
  Deadline deadline_;
  std::vector<std::int32_t> movable_;  // values that somebody may need later than at once
  std::vector<HoldChange> changes_;    // of the iteration under way
  std::int64_t looks_ = 0;             // of repair, at changes
  double best_time_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainscope::memplan
