// Keeps planner, worker and pictures of plans together.
#include "gui/panels/budget_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "gui/budget/child_process.h"
#include "gui/budget/train_on.h"
#include "gui/panels/empty_state.h"

namespace trainscope::gui {
namespace {

// What the run was planned with, as far as it is a level or a budget.
PlanRequest request_of(const RunData& run) {
  if (run.manifest() == nullptr) return {};
  const Json* level = run.manifest()->options.find("recompute");
  if (level != nullptr && level->is_string()) {
    if (level->as_string() == "1") return {.level = PlanLevel::kLevel1};
    if (level->as_string() == "2") return {.level = PlanLevel::kLevel2};
  }
  const PlanView* plan = run.plan();
  const bool budget =
      plan != nullptr && !plan->recompute.empty() && plan->recompute[0].budget_bytes > 0;
  if (!budget) return {};
  return {.level = PlanLevel::kAuto, .budget_bytes = plan->recompute[0].budget_bytes};
}

}  // namespace

void BudgetModel::look_at(const RunData& run) {
  if (run.path() != path_ || !planner_) {
    *this = BudgetModel();
    path_ = run.path();
    planner_ = std::make_unique<BudgetPlanner>(
        [path = path_] { return planned_step(RunReader::open(path)); });
    first_request_ = request_of(run);
    ask(first_request_);
  }
  if (run.version() == version_ || run.reader() == nullptr) return;
  version_ = run.version();
  command_.reset();
  run_ = *run.reader();
  try {
    checkpoint_step_ = newest_checkpoint_step(*run_);
  } catch (const std::exception&) {
    checkpoint_step_ = 0;  // a folder that cannot be read has none to go on from
  }
}

void BudgetModel::ask(PlanRequest request) {
  if (planner_ == nullptr) return;
  request_ = std::move(request);
  fault_.clear();
  command_.reset();
  planner_->ask(request_);
  budget_ = planner_->state();
}

void BudgetModel::ask_level(PlanLevel level) {
  PlanRequest request = request_;
  request.level = level;
  wanted_.clear();
  if (level == PlanLevel::kAuto && request.budget_bytes == 0 && range().empty()) {
    wanted_.emplace_back([](BudgetModel& model) { model.ask_level(PlanLevel::kAuto); });
    return;
  }
  constexpr double kFirstShare = 0.5;
  const bool has_budget = level != PlanLevel::kAuto || request.budget_bytes > 0;
  if (!has_budget) request.budget_bytes = range().at(kFirstShare);
  ask(std::move(request));
}

void BudgetModel::ask_bytes(std::int64_t bytes) {
  PlanRequest request = request_;
  wanted_.clear();
  request.level = PlanLevel::kAuto;
  request.budget_bytes = bytes;
  ask(std::move(request));
}

bool BudgetModel::ask_named(std::string_view budget) {
  const std::optional<std::int64_t> bytes = budget_named(budget, range().most_bytes);
  if (!bytes) return false;
  if (budget_->front) {
    ask_bytes(*bytes);
  } else {
    wanted_ = {[name = std::string(budget)](BudgetModel& model) { model.ask_named(name); }};
  }
  return true;
}

void BudgetModel::step(int direction) {
  if (!budget_->front) {
    wanted_.emplace_back([direction](BudgetModel& model) { model.step(direction); });
    return;
  }
  ask_bytes(neighbour_budget(*budget_->front, budget_now(), direction));
}

void BudgetModel::ask_least() {
  if (budget_->front) return ask_bytes(range().least_bytes);
  wanted_ = {[](BudgetModel& model) { model.ask_least(); }};
}

void BudgetModel::unpin_all() {
  PlanRequest request = request_;
  request.keep.clear();
  request.recompute.clear();
  ask(std::move(request));
}

std::int64_t BudgetModel::budget_now() const {
  if (request_.level == PlanLevel::kAuto) return request_.budget_bytes;
  return shown_ ? shown_->map.arena_bytes : range().most_bytes;
}

void BudgetModel::ask_what_was_wanted() {
  if (budget_->phase == BudgetState::Phase::kFailed) wanted_.clear();
  if (!budget_->front) return;
  for (const auto& ask_for : std::exchange(wanted_, {})) ask_for(*this);
}

void BudgetModel::advance() {
  if (planner_ == nullptr) return;
  budget_ = planner_->state();
  ask_what_was_wanted();
  take_answer();
  if (!worker_) return;
  const bool has_news = worker_->poll();
  if (has_news && worker_->state().has_ended()) version_ = 0;  // there is a new checkpoint
}

void BudgetModel::take_answer() {
  shown_ = budget_->answer;
  ghost_ = budget_->before ? budget_->before : budget_->plain;
  if (ghost_ && !ghost_->outcome.record) ghost_.reset();
}

bool BudgetModel::is_under_way() const {
  const bool opening = planner_ && budget_->phase == BudgetState::Phase::kOpening;
  return opening || !wanted_.empty() || budget_->planning || trains();
}

BudgetRange BudgetModel::range() const {
  return budget_->front ? range_of(*budget_->front) : BudgetRange{};
}

std::int64_t BudgetModel::most_bytes() const {
  const auto bytes_of = [](const PlanAnswer* plan) {
    return plan == nullptr ? std::int64_t{1} : plan->map.arena_bytes;
  };
  return std::max({range().most_bytes, bytes_of(shown()), bytes_of(ghost()), std::int64_t{1}});
}

std::vector<std::string> BudgetModel::words(const std::filesystem::path& new_run) const {
  return train_words(*run_, request_, pins_file(*run_, request_), kSteps, new_run);
}

const std::string& BudgetModel::command() const {
  if (command_) return *command_;
  command_.emplace();
  if (!missing_start().empty()) return *command_;
  try {
    command_ = command_line(words(new_run_folder(*run_, kSteps)));
  } catch (const std::exception&) {
    command_->clear();  // pins that no file can hold, a folder that cannot be read
  }
  return *command_;
}

std::string BudgetModel::missing_start() const {
  if (!run_) return "Only a run can be trained on.";
  if (checkpoint_step_ > 0) return {};
  return "The run has no checkpoint to go on from: it needs --save-every, or to have ended.";
}

std::string BudgetModel::obstacle() const {
  if (trains()) return "A worker trains already.";
  if (!fault_.empty()) return fault_;
  if (std::string missing = missing_start(); !missing.empty()) return missing;
  if (budget_->planning || !shown_ || shown_->outcome.draft) return "The plan is still being made.";
  return shown_->outcome.record ? "" : "There is no plan for it.";
}

void BudgetModel::train() {
  if (!obstacle().empty()) return;
  try {
    write_pins(*run_, request_);
    new_run_ = new_run_folder(*run_, kSteps);
    std::vector<std::string> line = words(new_run_);
    applied_command_ = command_line(line);
    applied_twin_ = twin();
    line.insert(line.end(), {"--progress", "none", "-q"});
    applied_ = shown_;
    worker_ = std::make_unique<WorkerProcess>(trainscope_program(), std::move(line));
  } catch (const std::exception& exception) {
    fault_ = error_of(exception).message();
  }
}

void BudgetModel::stop() {
  if (worker_) worker_->stop();
}

std::string BudgetModel::twin_of(const PlanRequest& request) const {
  std::string line = fmt::format("trainscope plan {}", shell_word(path_.string()));
  if (!run_) return line;
  try {
    for (const std::string& word : plan_flags(request, pins_file(*run_, request))) {
      line += " " + shell_word(word);
    }
  } catch (const std::exception&) {
    return line;  // pins that no file can hold: training with them says so
  }
  return line;
}

}  // namespace trainscope::gui
