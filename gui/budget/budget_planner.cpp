// The planner's thread: open the step, then drafts and plans of the newest request.
#include "gui/budget/budget_planner.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/progress.h"
#include "gui/budget/budget_view.h"

namespace trainscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The calling thread, and those that it starts, have a processor where the thread that draws needs
// none: a plan and its helper would take both of two.
void let_frames_go_first() {
  constexpr int kNice = 10;
  (void)::setpriority(PRIO_PROCESS, 0, kNice);
}

bool same_pins(const PlanRequest& left, const PlanRequest& right) {
  return left.keep == right.keep && left.recompute == right.recompute;
}

// What there is to show of a request before anything is planned for it.
std::optional<TradePoint> known_point(const BudgetState& state, const PlanRequest& request) {
  const bool has_front = state.front && same_pins(state.front_of, request);
  if (!has_front || request.level != PlanLevel::kAuto) return std::nullopt;
  const TradePoint* quickest = quickest_within(*state.front, request.budget_bytes);
  return quickest == nullptr ? std::nullopt : std::optional(*quickest);
}

}  // namespace

BudgetPlanner::BudgetPlanner(OpenStep open)
    : open_(std::move(open)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

BudgetPlanner::~BudgetPlanner() {
  thread_.request_stop();
  const std::scoped_lock lock(mutex_);
  refinement_.request_stop();
}

template <typename Change>
void BudgetPlanner::change(const Change& change) {
  const std::scoped_lock lock(mutex_);
  BudgetState state = *state_;
  change(state);
  state_ = std::make_shared<const BudgetState>(std::move(state));
}

std::uint64_t BudgetPlanner::ask(PlanRequest request) {
  std::uint64_t id = 0;
  change([&](BudgetState& state) {
    id = ++state.asked;
    state.planning = state.phase != BudgetState::Phase::kFailed;
    state.point = known_point(state, request);
    waiting_ = Asked{.id = id, .request = std::move(request), .at = Clock::now()};
    refinement_.request_stop();
  });
  asked_.notify_all();
  return id;
}

std::shared_ptr<const BudgetState> BudgetPlanner::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

void BudgetPlanner::run(const std::stop_token& stop) {
  let_frames_go_first();
  try {
    const auto show_progress = [this](const Progress& moment) {
      change([&](BudgetState& state) {
        state.now = moment.now.empty() ? std::string(moment.work)
                                       : fmt::format("{}: {}", moment.work, moment.now);
      });
    };
    StepPlanner planner(open_(), {.stop = stop, .progress = show_progress});
    PlanOutcome plain_outcome = planner.plain();
    pinnable_ = std::make_shared<const PinnableValues>(view_of(plain_outcome.record));
    auto plain = answer_with(std::move(plain_outcome), {.at = Clock::now()});
    auto front = std::make_shared<const std::vector<TradePoint>>(planner.front({}));
    change([&](BudgetState& state) {
      state.phase = BudgetState::Phase::kReady;
      state.now.clear();
      state.plain = std::move(plain);
      state.pinnable = pinnable_;
      state.front = std::move(front);
    });
    serve(planner, stop);
  } catch (const Stopped&) {
    // Nobody looks any more.
  } catch (const std::exception& exception) {
    fail(exception);
  }
}

void BudgetPlanner::fail(const std::exception& exception) {
  const Error error = error_of(exception);
  change([&](BudgetState& state) {
    state.phase = BudgetState::Phase::kFailed;
    state.planning = false;
    state.now = error.message();
    state.hint = error.hint();
  });
}

std::optional<BudgetPlanner::Asked> BudgetPlanner::next(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!asked_.wait(lock, stop, [this] { return waiting_.has_value(); })) return std::nullopt;
  if (stop.stop_requested()) return std::nullopt;
  refinement_ = std::stop_source();
  std::optional<Asked> asked = std::exchange(waiting_, std::nullopt);
  asked->newer = refinement_.get_token();
  return asked;
}

void BudgetPlanner::serve(StepPlanner& planner, const std::stop_token& stop) {
  while (const std::optional<Asked> asked = next(stop)) {
    try {
      answer(planner, *asked);
    } catch (const Stopped&) {
      if (stop.stop_requested()) return;  // else a newer request waits
    }
  }
}

// A draft is made to its end even when a newer request comes: whoever drags a slider sees one after
// the other. What takes longer is not.
void BudgetPlanner::answer(StepPlanner& planner, const Asked& asked) {
  try {
    if (!same_pins(state()->front_of, asked.request)) {
      auto front = std::make_shared<const std::vector<TradePoint>>(planner.front(asked.request));
      change([&](BudgetState& state) {
        state.front = std::move(front);
        state.front_of = asked.request;
      });
    }
    if (asked.request.level == PlanLevel::kAuto) {
      const std::optional<TradePoint> point = planner.point(asked.request);
      change([&](BudgetState& state) {
        if (state.asked != asked.id) return;
        state.point = point;
        state.searched = asked.id;
      });
      if (std::optional<PlanOutcome> draft = planner.draft(asked.request)) {
        show(*std::move(draft), asked);
      }
    }
  } catch (const Error&) {
    // Pins that cannot be kept to: the plan says why.
  }
  show(planner.plan(asked.request, asked.newer), asked);
}

std::shared_ptr<const PlanAnswer> BudgetPlanner::answer_with(PlanOutcome outcome,
                                                             const Asked& asked) {
  PlanAnswer answer{.id = asked.id, .outcome = std::move(outcome)};
  draw_up(answer, *pinnable_);
  answer.milliseconds = milliseconds_since(asked.at);
  return shown_.emplace_back(std::make_shared<const PlanAnswer>(std::move(answer)));
}

void BudgetPlanner::show(PlanOutcome outcome, const Asked& asked) {
  std::shared_ptr<const PlanAnswer> answer = answer_with(std::move(outcome), asked);
  change([&](BudgetState& state) {
    if (state.answer && !state.answer->outcome.draft && state.answer->id != answer->id) {
      state.before = state.answer;
    }
    if (!answer->outcome.draft && answer->id == state.asked) state.planning = false;
    state.answer = std::move(answer);
  });
  std::erase_if(shown_, [](const auto& each) { return each.use_count() == 1; });
}

}  // namespace trainscope::gui
