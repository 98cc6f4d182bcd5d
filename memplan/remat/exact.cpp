// Dijkstra's search over what is in memory.
#include "memplan/remat/exact.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;

constexpr int32_t kMostNodes = 32;

// The low half: what is in memory. The high half: the next node to run for the first time.
using State = uint64_t;

State bit(int32_t node) { return State{1} << node; }
int32_t next_of(State state) { return static_cast<int32_t>(state >> 32); }

class StateSearch {
 public:
  StateSearch(const RematGraph& graph, int64_t budget_bytes, size_t most_states)
      : graph_(graph), budget_bytes_(budget_bytes), most_states_(most_states) {}

  ExactResult run() {
    reached_[0] = {};
    queue_.emplace(0, 0);
    while (!queue_.empty()) {
      const auto [time, state] = queue_.top();
      queue_.pop();
      if (time > reached_[state].time) continue;
      graph_.check_stop();
      if (next_of(state) == graph_.size()) {
        return {.status = ExactStatus::kOptimal, .plan = plan_to(state)};
      }
      expand(state, time);
      if (reached_.size() > most_states_) return {};
    }
    return {.status = ExactStatus::kImpossible};
  }

 private:
  struct Arrival {
    double time = 0;
    State from = 0;
    RematAction action = {};
  };

  void reach(State state, const Arrival& arrival) {
    const auto [known, inserted] = reached_.emplace(state, arrival);
    if (!inserted && known->second.time <= arrival.time) return;
    known->second = arrival;
    queue_.emplace(arrival.time, state);
  }

  void expand(State state, double time) {
    int64_t live_bytes = 0;
    for (int32_t node = 0; node < graph_.size(); ++node) {
      if ((state & bit(node)) != 0) live_bytes += graph_.bytes(node);
    }
    for (int32_t node = 0; node <= next_of(state); ++node) {
      if ((state & bit(node)) != 0) {
        reach(state & ~bit(node), {time, state, {RematActionKind::kFree, node}});
      } else if (can_run(state, node, live_bytes)) {
        const bool first = node == next_of(state);
        const State after = (state | bit(node)) + (first ? State{1} << 32 : 0);
        reach(after, {time + graph_.time(node), state, {RematActionKind::kCompute, node}});
      }
    }
  }

  bool can_run(State state, int32_t node, int64_t live_bytes) const {
    if (node < next_of(state) && !graph_.may_rerun(node)) return false;
    const auto inputs = graph_.inputs(node);
    return live_bytes + graph_.bytes(node) + graph_.workspace_bytes(node) <= budget_bytes_ &&
           std::all_of(inputs.begin(), inputs.end(),
                       [&](int32_t input) { return (state & bit(input)) != 0; });
  }

  RematPlan plan_to(State state) const {
    RematPlan plan;
    for (; state != 0; state = reached_.at(state).from) {
      plan.actions.push_back(reached_.at(state).action);
    }
    std::reverse(plan.actions.begin(), plan.actions.end());
    return plan;
  }

  using Entry = std::pair<double, State>;

  const RematGraph& graph_;
  int64_t budget_bytes_;
  size_t most_states_;
  std::unordered_map<State, Arrival> reached_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

ExactResult solve_exactly(const RematGraph& graph, int64_t budget_bytes, size_t most_states) {
  if (graph.size() >= kMostNodes) return {};
  return StateSearch(graph, budget_bytes, most_states).run();
}

}  // namespace trainscope::memplan
