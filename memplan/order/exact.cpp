// The order of the lowest peak, by search over the sets of ops that can have run.
#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_set>

#include "memplan/order/search.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;

using Set = uint64_t;  // of ops

Set with(Set set, size_t op) { return set | Set{1} << op; }
bool has(Set set, size_t op) { return (set >> op & 1) != 0; }

// A set that can have run, with the lowest peak of the orders that lead to it.
struct State {
  Set ran = 0;
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
  int32_t from = -1;  // index of the state before
  int32_t op = -1;    // that led here
};

// Best first by peak. The bytes alive follow from the set alone, so the first state of a set to
// leave the queue is the best one.
class Search {
 public:
  Search(const OrderGraph& graph, int64_t below_bytes, OrderEffort& effort)
      : graph_(graph), below_bytes_(below_bytes), effort_(effort) {
    const size_t count = graph.problem.ops.size();
    before_.assign(count, 0);
    readers_.assign(graph.problem.values.size(), 0);
    for (size_t op = 0; op < count; ++op) {
      for (int32_t p : graph.predecessors[op]) {
        before_[op] = with(before_[op], static_cast<size_t>(p));
      }
      for (int32_t v : graph.problem.ops[op].reads) {
        Set& set = readers_[static_cast<size_t>(v)];
        set = with(set, op);
      }
    }
    all_ = count == kMostExactOps ? ~Set{0} : with(0, count) - 1;
  }

  ExactOrder run() {
    add({.ran = 0, .live_bytes = graph_.start_bytes});
    while (!queue_.empty()) {
      const int32_t index = queue_.top().state;
      queue_.pop();
      const State state = states_[static_cast<size_t>(index)];
      if (state.ran == all_) return {.order = order_to(index), .complete = true};
      if (!seen_.insert(state.ran).second) continue;
      if (!effort_.spend(static_cast<int64_t>(before_.size()))) return {};
      expand(state, index);
    }
    return {.order = {}, .complete = true};
  }

 private:
  struct Entry {
    int64_t peak_bytes;
    int waiting;  // ops
    int32_t state;

    // Of the queue, whose top is the greatest.
    bool operator<(const Entry& other) const {
      if (peak_bytes != other.peak_bytes) return peak_bytes > other.peak_bytes;
      if (waiting != other.waiting) return waiting > other.waiting;
      return state > other.state;
    }
  };

  void add(const State& state) {
    queue_.push({.peak_bytes = state.peak_bytes,
                 .waiting = static_cast<int>(before_.size()) - std::popcount(state.ran),
                 .state = static_cast<int32_t>(states_.size())});
    states_.push_back(state);
  }

  // An op that raises neither the peak nor the bytes alive may run at once: whatever runs before it
  // elsewhere runs after it with no more bytes alive. So it is the only one to look at.
  void expand(const State& state, int32_t index) {
    std::vector<State> next;
    for (size_t op = 0; op < before_.size(); ++op) {
      if (has(state.ran, op) || (before_[op] & ~state.ran) != 0) continue;
      const LiveSet::Effect effect = effect_of(state, op);
      if (effect.during_bytes >= below_bytes_) continue;
      next.push_back({.ran = with(state.ran, op),
                      .live_bytes = effect.after_bytes,
                      .peak_bytes = std::max(state.peak_bytes, effect.during_bytes),
                      .from = index,
                      .op = static_cast<int32_t>(op)});
      const bool is_free =
          effect.during_bytes <= state.peak_bytes && effect.after_bytes <= state.live_bytes;
      if (!is_free) continue;
      add(next.back());
      return;
    }
    for (const State& each : next) {
      if (!seen_.contains(each.ran)) add(each);
    }
  }

  bool dies(Set ran, size_t op, int32_t value) const {
    return !graph_.problem.values[static_cast<size_t>(value)].kept &&
           (readers_[static_cast<size_t>(value)] & ~with(ran, op)) == 0;
  }

  LiveSet::Effect effect_of(const State& state, size_t index) const {
    const OrderOp& op = graph_.problem.ops[index];
    LiveSet::Effect effect{.during_bytes = state.live_bytes + op.workspace_bytes,
                           .after_bytes = state.live_bytes};
    for (int32_t v : op.makes) {
      const OrderValue& value = graph_.problem.values[static_cast<size_t>(v)];
      effect.during_bytes += value.bytes;
      if (value.kept || readers_[static_cast<size_t>(v)] != 0) effect.after_bytes += value.bytes;
    }
    for (int32_t v : op.reads) {
      if (dies(state.ran, index, v)) {
        effect.after_bytes -= graph_.problem.values[static_cast<size_t>(v)].bytes;
      }
    }
    effect.during_bytes -= taken_over_bytes(
        graph_.problem, op, [&](int32_t value) { return dies(state.ran, index, value); });
    return effect;
  }

  std::vector<int32_t> order_to(int32_t index) const {
    std::vector<int32_t> order;
    for (int32_t at = index; states_[static_cast<size_t>(at)].from >= 0;
         at = states_[static_cast<size_t>(at)].from) {
      order.push_back(states_[static_cast<size_t>(at)].op);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  const OrderGraph& graph_;
  int64_t below_bytes_;
  OrderEffort& effort_;
  Set all_ = 0;
  std::vector<Set> before_;   // by op
  std::vector<Set> readers_;  // by value
  std::vector<State> states_;
  std::priority_queue<Entry> queue_;
  std::unordered_set<Set> seen_;
};

}  // namespace

ExactOrder exact_order(const OrderGraph& graph, int64_t below_bytes, OrderEffort& effort) {
  if (graph.problem.ops.size() > kMostExactOps) return {};
  return Search(graph, below_bytes, effort).run();
}

}  // namespace trainscope::memplan
