// Plans a step again and again on a thread of its own, as a slider over the budget asks for it: the
// newest request wins.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/recompute/recompute.h"
#include "gui/budget/plan_answer.h"
#include "gui/budget/step_planner.h"

namespace trainscope::gui {

// All that there is to show of a budget. What it points to does not change.
struct BudgetState {
  enum class Phase : std::uint8_t { kOpening, kReady, kFailed };
  Phase phase = Phase::kOpening;
  std::string now = {};                          // what is being done; of kFailed what is wrong
  std::string hint = {};                         // of kFailed
  std::uint64_t asked = 0;                       // the newest request
  bool planning = false;                         // its last answer is on its way
  std::shared_ptr<const PlanAnswer> plain = {};  // the step without recomputation; id 0
  std::shared_ptr<const PinnableValues> pinnable = {};  // null while it is being opened
  // The plans that no other beats, by falling arena, with the pins of `front_of`.
  std::shared_ptr<const std::vector<TradePoint>> front = {};
  PlanRequest front_of = {};
  // Of the newest request, before its bytes have places: at once the quickest plan of the front,
  // then what a search of its neighbours makes of it, once `searched` is the request.
  std::optional<TradePoint> point = {};
  std::uint64_t searched = 0;
  // The newest answers: to the newest request, or while there is none to an older one.
  std::shared_ptr<const PlanAnswer> answer = {};
  // The last one that was no draft, before `answer`: what a new plan is held against.
  std::shared_ptr<const PlanAnswer> before = {};
};

class BudgetPlanner {
 public:
  // Gives the step; called once, by the planner's thread. What it throws is shown.
  using OpenStep = std::function<PlannedStep()>;

  explicit BudgetPlanner(OpenStep open);
  // Stops what is under way, which takes some milliseconds.
  ~BudgetPlanner();
  BudgetPlanner(const BudgetPlanner&) = delete;
  BudgetPlanner& operator=(const BudgetPlanner&) = delete;

  // Neither waits for a plan. A request gets an id, from 1; of several that wait the newest is
  // answered, and a better answer than a draft is looked for until there is a newer one.
  std::uint64_t ask(PlanRequest request);
  std::shared_ptr<const BudgetState> state() const;

 private:
  struct Asked {
    std::uint64_t id = 0;
    PlanRequest request = {};
    std::chrono::steady_clock::time_point at = {};
    std::stop_token newer = {};  // asked to stop once there is a newer one
  };

  void run(const std::stop_token& stop);
  void serve(StepPlanner& planner, const std::stop_token& stop);
  std::optional<Asked> next(const std::stop_token& stop);
  void answer(StepPlanner& planner, const Asked& asked);
  void show(PlanOutcome outcome, const Asked& asked);
  std::shared_ptr<const PlanAnswer> answer_with(PlanOutcome outcome, const Asked& asked);
  void fail(const std::exception& exception);
  template <typename Change>
  void change(const Change& change);

  OpenStep open_;

  // Of the planner's thread.
  std::shared_ptr<const PinnableValues> pinnable_;
  // Answers that were shown: whoever draws one does not have the last reference to it, whose end
  // takes as long as a frame, while the planner is there.
  std::vector<std::shared_ptr<const PlanAnswer>> shown_;

  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::optional<Asked> waiting_;
  std::stop_source refinement_;  // of the answer under way
  std::shared_ptr<const BudgetState> state_ = std::make_shared<const BudgetState>();

  std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace trainscope::gui
