// List scheduling for memory.
#include <algorithm>
#include <compare>
#include <set>

#include "memplan/order/search.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

using Order = std::vector<int32_t>;

// Of the ops that could run, so many are looked at: the first in the given order.
constexpr size_t kMostLooks = 64;

// Lower runs earlier; the position in the given order decides between equals.
struct Rank {
  int64_t first = 0;
  int64_t second = 0;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};
using Priority = Rank (*)(const LiveSet::Effect&, int64_t live, int64_t peak);

Rank frees_most(const LiveSet::Effect& effect, int64_t live, int64_t) {
  return {effect.after_bytes - live, effect.during_bytes};
}

Rank least_peak(const LiveSet::Effect& effect, int64_t live, int64_t peak) {
  return {std::max(effect.during_bytes, peak), effect.after_bytes - live};
}

// What raises neither the peak nor the bytes alive goes first, the rest as given.
Rank free_first(const LiveSet::Effect& effect, int64_t live, int64_t peak) {
  const bool is_free = effect.after_bytes <= live && effect.during_bytes <= peak;
  return {is_free ? 0 : 1, 0};
}

// `given` decides between equals.
Order schedule(const OrderGraph& graph, Priority priority, const Order& given,
               OrderEffort& effort) {
  std::vector<int32_t> rank(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    rank[static_cast<size_t>(given[i])] = static_cast<int32_t>(i);
  }
  LiveSet live(graph);
  std::set<int32_t> ready;  // ranks
  for (int32_t op : given) {
    if (live.is_ready(op)) ready.insert(rank[static_cast<size_t>(op)]);
  }
  Order order;
  int64_t peak = 0;
  while (!ready.empty()) {
    auto best = ready.begin();
    Rank best_rank;
    size_t looks = 0;
    for (auto it = ready.begin(); it != ready.end() && looks < kMostLooks; ++it, ++looks) {
      const int32_t op = given[static_cast<size_t>(*it)];
      const Rank now = priority(live.effect_of(op), live.bytes(), peak);
      if (looks == 0 || now < best_rank) {
        best = it;
        best_rank = now;
      }
    }
    if (!effort.spend(static_cast<int64_t>(looks))) return {};
    const int32_t op = given[static_cast<size_t>(*best)];
    ready.erase(best);
    peak = std::max(peak, live.effect_of(op).during_bytes);
    live.run(op);
    order.push_back(op);
    for (int32_t next : graph.successors[static_cast<size_t>(op)]) {
      if (live.is_ready(next)) ready.insert(rank[static_cast<size_t>(next)]);
    }
  }
  return order;
}

// The ops that have not run and must run before `op`, and it, in the given order.
Order waiting_before(const OrderGraph& graph, int32_t op, std::vector<bool>& ran) {
  Order found = {op};
  ran[static_cast<size_t>(op)] = true;
  for (size_t next = 0; next < found.size(); ++next) {
    for (int32_t before : graph.predecessors[static_cast<size_t>(found[next])]) {
      if (ran[static_cast<size_t>(before)]) continue;
      ran[static_cast<size_t>(before)] = true;
      found.push_back(before);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Ops that leave more bytes than they find wait until something needs them.
Order late(const OrderGraph& graph, const Order& given) {
  std::vector<bool> anchor(given.size(), false);
  LiveSet live(graph);
  for (int32_t op : given) {
    const bool last = graph.successors[static_cast<size_t>(op)].empty();
    const bool frees = live.effect_of(op).after_bytes <= live.bytes();
    anchor[static_cast<size_t>(op)] = last || frees;
    live.run(op);
  }
  std::vector<bool> ran(given.size(), false);
  Order order;
  for (int32_t op : given) {
    if (!anchor[static_cast<size_t>(op)] || ran[static_cast<size_t>(op)]) continue;
    const Order before = waiting_before(graph, op, ran);
    order.insert(order.end(), before.begin(), before.end());
  }
  return order;
}

}  // namespace

std::vector<Order> list_schedules(const OrderGraph& graph, OrderEffort& effort) {
  Order given(graph.problem.ops.size());
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<int32_t>(i);
  std::vector<Order> orders;
  orders.push_back(schedule(graph, free_first, given, effort));
  orders.push_back(late(graph, given));
  orders.push_back(schedule(graph, free_first, orders[1], effort));
  orders.push_back(schedule(graph, frees_most, given, effort));
  orders.push_back(schedule(graph, least_peak, given, effort));
  std::erase_if(orders, [](const Order& order) { return order.empty(); });
  return orders;
}

}  // namespace trainscope::memplan
