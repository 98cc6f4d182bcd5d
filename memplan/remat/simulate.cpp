// Replays recompute plans.
#include <algorithm>

#include "memplan/remat/plan.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;

class Machine {
 public:
  explicit Machine(const RematProblem& problem)
      : problem_(problem), in_memory_(problem.nodes.size()), executions_(problem.nodes.size()) {}

  // Why the action cannot be done, or "".
  string perform(const RematAction& action, int64_t index) {
    const int32_t node = action.node;
    if (node < 0 || static_cast<size_t>(node) >= problem_.nodes.size()) {
      return "there is no node #" + std::to_string(node);
    }
    return action.kind == RematActionKind::kCompute ? compute(node, index) : free(node);
  }

  // A node that has not run, or -1.
  int32_t missing() const {
    const auto at = std::find(executions_.begin(), executions_.end(), 0);
    return at == executions_.end() ? -1 : static_cast<int32_t>(at - executions_.begin());
  }

  RematReplay replay = {};

 private:
  string compute(int32_t index, int64_t action) {
    const size_t at = static_cast<size_t>(index);
    const RematNode& node = problem_.nodes[at];
    if (in_memory_[at])
      return describe_node(problem_, index) + " runs while its value is in memory";
    for (const int32_t input : node.inputs) {
      if (!in_memory_[static_cast<size_t>(input)]) {
        return describe_node(problem_, index) + " runs without its input " +
               describe_node(problem_, input);
      }
    }
    if (executions_[at]++ > 0) {
      if (!node.may_rerun) return describe_node(problem_, index) + " must run only once";
      ++replay.reruns;
    }
    in_memory_[at] = true;
    live_bytes_ += node.bytes;
    if (__builtin_add_overflow(replay.time, node.time, &replay.time)) {
      return "the times add up to more than a signed 64-bit integer holds";
    }
    if (live_bytes_ + node.workspace_bytes > replay.peak_bytes) {
      replay.peak_bytes = live_bytes_ + node.workspace_bytes;
      replay.peak_action = action;
    }
    return {};
  }

  string free(int32_t index) {
    const size_t at = static_cast<size_t>(index);
    if (!in_memory_[at]) return describe_node(problem_, index) + " is freed but not in memory";
    in_memory_[at] = false;
    live_bytes_ -= problem_.nodes[at].bytes;
    return {};
  }

  const RematProblem& problem_;
  std::vector<bool> in_memory_;
  std::vector<int32_t> executions_;  // by node: how many
  int64_t live_bytes_ = 0;
};

}  // namespace

RematReplay simulate(const RematProblem& problem, const RematPlan& plan) {
  Machine machine(problem);
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const string wrong = machine.perform(plan.actions[i], static_cast<int64_t>(i));
    if (wrong.empty()) continue;
    machine.replay.message = "action " + std::to_string(i + 1) + ": " + wrong;
    return machine.replay;
  }
  if (const int32_t node = machine.missing(); node >= 0) {
    machine.replay.message = describe_node(problem, node) + " never runs";
  }
  return machine.replay;
}

RematPlan save_all_plan(const RematProblem& problem) {
  const size_t count = problem.nodes.size();
  std::vector<size_t> last_use(count);
  for (size_t i = 0; i < count; ++i) {
    last_use[i] = i;
    for (const int32_t input : problem.nodes[i].inputs) last_use[static_cast<size_t>(input)] = i;
  }
  RematPlan plan;
  for (size_t i = 0; i < count; ++i) {
    const int32_t node = static_cast<int32_t>(i);
    plan.actions.push_back({.kind = RematActionKind::kCompute, .node = node});
    for (const int32_t input : problem.nodes[i].inputs) {
      if (last_use[static_cast<size_t>(input)] == i) {
        plan.actions.push_back({.kind = RematActionKind::kFree, .node = input});
      }
    }
    if (last_use[i] == i) plan.actions.push_back({.kind = RematActionKind::kFree, .node = node});
  }
  return plan;
}

}  // namespace trainscope::memplan
