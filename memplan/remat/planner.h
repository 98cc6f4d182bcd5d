// The rematerialization planner: the least time within a budget of bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "memplan/deadline.h"
#include "memplan/remat/front.h"
#include "memplan/remat/graph.h"
#include "memplan/remat/plan.h"
#include "memplan/remat/problem.h"

namespace trainscope::memplan {

enum class RematEffort : std::uint8_t {
  kLookUp,  // the quickest of the plans known: the front's, and those found before
  kRepair,  // also what a greedy search makes of its neighbours
  kSearch,  // also exact search or annealing
};

// Without a time limit the answer depends on the problem alone, and on what was asked before.
struct RematOptions {
  std::int64_t budget_bytes = 0;
  double seconds = std::numeric_limits<double>::infinity();
  RematEffort effort = RematEffort::kSearch;
  // Small problems are first tried by search over every state; 0: never.
  std::size_t most_exact_states = 100'000;
};

enum class RematStatus {
  kPlanned,     // `plan` keeps the budget
  kInfeasible,  // no plan keeps the budget: `message` names the node and the least budget for it
  kNotFound,    // none was found, and none was proven to be impossible
  kBadProblem,  // `message` says what is wrong
};

struct RematResult {
  RematStatus status = RematStatus::kBadProblem;
  RematPlan plan = {};
  std::int64_t peak_bytes = 0;
  std::int64_t time = 0;
  std::int64_t base_time = 0;         // without recompute
  std::int64_t save_all_bytes = 0;    // the peak without recompute
  std::int64_t lower_bound_time = 0;  // no plan within the budget takes less
  std::int64_t least_bytes = 0;       // no plan needs less; because of this node
  std::int32_t least_node = 0;
  std::int64_t workable_bytes = 0;  // a plan was found that needs this
  bool proven = false;              // time == lower bound
  std::string message = {};         // empty when planned
  std::chrono::nanoseconds elapsed = {};
};

// For many budgets of one problem: the front is made once, and a plan that was found counts for
// every later budget. By look-up alone more budget never gives more time, whatever the order of the
// questions.
class RematPlanner {
 public:
  // The problem must be without error (see find_remat_error) and stay. Asked to stop, plan() and
  // front() throw Stopped within some milliseconds.
  explicit RematPlanner(const RematProblem& problem, std::stop_token stop = {});
  RematPlanner(const RematPlanner&) = delete;
  RematPlanner& operator=(const RematPlanner&) = delete;

  RematResult plan(const RematOptions& options);
  const RematFront& front();

 private:
  using Clock = std::chrono::steady_clock;

  struct Known {
    std::int64_t time = 0;
    RematPlan plan = {};
  };
  struct Question {
    std::int64_t budget_bytes = 0;
    RematEffort effort = RematEffort::kSearch;
    Deadline deadline = {};
    std::size_t most_exact_states = 0;
  };

  RematResult answer(const Question& question);
  RematResult infeasible(const Question& question);
  RematResult no_plan(const Question& question) const;
  RematResult too_large() const;
  RematResult exact_or_search(const Question& question, double bound);
  RematResult search(const Question& question, double bound);
  RematResult best_known(const Question& question, double bound);
  RematResult planned(RematPlan plan, double bound) const;
  void learn(const RematPlan& plan);
  bool searchable() const;

  const RematProblem& problem_;
  RematGraph graph_;
  std::optional<RematFront> front_;
  std::map<std::int64_t, Known> known_;  // by peak, with falling time
  RematResult facts_;                    // what is the same for every budget
  bool least_searched_ = false;          // whether a plan for the least bytes was searched
};

[[nodiscard]] RematResult plan_remat(const RematProblem& problem, const RematOptions& options);

}  // namespace trainscope::memplan
