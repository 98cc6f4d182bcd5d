// What the Budget panel is about: the active run's step, the plan that is asked for and what came
// of it, and a worker that trains with one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/budget/budget_planner.h"
#include "gui/budget/budget_view.h"
#include "gui/budget/worker_process.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {

class BudgetModel {
 public:
  static constexpr std::int64_t kSteps = 20;  // that a worker makes

  // Plans the step of this run from now on; a worker of another one ends, with a checkpoint.
  void look_at(const RunData& run);
  // Takes what planner and worker have to say. Never waits.
  void advance();
  // Whether something that is shown will change by itself.
  bool is_under_way() const;

  const BudgetState& budget() const { return *budget_; }
  const PlanRequest& request() const { return request_; }
  // What the run was planned with.
  const PlanRequest& first_request() const { return first_request_; }
  void ask(PlanRequest request);
  void ask_first() { wanted_.clear(), ask(first_request_); }
  // A level; of kAuto the budget that was asked for last, or half of the way to the least.
  void ask_level(PlanLevel level);
  void ask_bytes(std::int64_t bytes);  // a budget
  // "60%", "300MB"; false where that is none. As soon as it is known what plans there are.
  bool ask_named(std::string_view budget);
  // The plan of the front with the next smaller arena (-1), or larger one (1), and the smallest;
  // as soon as it is known what plans there are.
  void step(int direction);
  void ask_least();
  void unpin_all();
  // The budget that is asked for; of a level the bytes of its plan.
  std::int64_t budget_now() const;
  BudgetRange range() const;
  // Null until the step is open.
  const PinnableValues* pinnable() const { return budget_->pinnable.get(); }
  // The newest answer, and the plan that it is held against, at first the step without
  // recomputation; null where there is none. The same until the next advance().
  const PlanAnswer* shown() const { return shown_.get(); }
  const PlanAnswer* ghost() const { return ghost_.get(); }
  // Of all plans that are shown: what their height is drawn against.
  std::int64_t most_bytes() const;

  // The command line that trains on with the plan that is asked for; empty where none can.
  const std::string& command() const;
  // Why the run cannot be trained on, whatever the plan; empty where it can.
  std::string missing_start() const;
  // Why it cannot be run now; empty where it can.
  std::string obstacle() const;
  void train();
  void stop();
  const WorkerState* worker() const { return worker_ ? &worker_->state() : nullptr; }
  bool trains() const { return worker_ && !worker_->state().has_ended(); }
  // The folder of the new run that the worker makes; empty: a session of this one.
  const std::filesystem::path& new_run() const { return new_run_; }
  // The plan that the worker was started with.
  const PlanOutcome& applied() const { return applied_->outcome; }
  // The command line that it was started with, and the one that printed the numbers of its plan.
  const std::string& applied_command() const { return applied_command_; }
  const std::string& applied_twin() const { return applied_twin_; }
  // The command lines that print the numbers of the plan, and of another one.
  std::string twin() const { return twin_of(request_); }
  std::string twin_of(const PlanRequest& request) const;

 private:
  void ask_what_was_wanted();
  void take_answer();
  std::vector<std::string> words(const std::filesystem::path& new_run) const;

  std::filesystem::path path_;
  std::uint64_t version_ = 0;  // of the run, when its checkpoints were looked at
  std::optional<RunReader> run_;
  std::int64_t checkpoint_step_ = 0;
  std::unique_ptr<BudgetPlanner> planner_;
  std::shared_ptr<const BudgetState> budget_ = std::make_shared<const BudgetState>();
  PlanRequest request_;
  PlanRequest first_request_;
  // What is asked for once it is known what budgets there are: a budget and then steps from it.
  std::vector<std::function<void(BudgetModel&)>> wanted_;
  std::shared_ptr<const PlanAnswer> shown_;
  std::shared_ptr<const PlanAnswer> ghost_;
  std::unique_ptr<WorkerProcess> worker_;
  std::shared_ptr<const PlanAnswer> applied_;
  std::string applied_command_;
  std::string applied_twin_;
  std::filesystem::path new_run_;
  std::string fault_;                           // of the last attempt to train
  mutable std::optional<std::string> command_;  // as long as neither request nor run changes
};

}  // namespace trainscope::gui
