// Beam search for an order of low peak.
#include <algorithm>
#include <compare>
#include <unordered_set>

#include "memplan/order/search.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;

constexpr size_t kWidth = 16;
constexpr size_t kMostLooks = 32;  // ops looked at from one state, the first in the given order

// One way so far.
struct Way {
  LiveSet live;
  std::vector<int32_t> order;
  std::vector<int32_t> ready;  // ascending
  int64_t peak_bytes = 0;
  uint64_t hash = 0;  // of the set that ran
};

// A way with one op more.
struct Step {
  int64_t peak_bytes = 0;
  int64_t live_bytes = 0;
  size_t way = 0;
  int32_t op = 0;

  friend auto operator<=>(const Step&, const Step&) = default;
};

// splitmix64 (Steele, Lea and Flood 2014).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class Beam {
 public:
  Beam(const OrderGraph& graph, int64_t below_bytes, OrderEffort& effort)
      : graph_(graph), below_bytes_(below_bytes), effort_(effort) {}

  std::optional<std::vector<int32_t>> run() {
    const size_t count = graph_.problem.ops.size();
    ways_.push_back({.live = LiveSet(graph_), .order = {}, .ready = {}});
    for (size_t op = 0; op < count; ++op) {
      const auto id = static_cast<int32_t>(op);
      if (ways_[0].live.is_ready(id)) ways_[0].ready.push_back(id);
    }
    for (size_t i = 0; i < count && !ways_.empty(); ++i) {
      if (!advance()) return std::nullopt;
    }
    return ways_.empty() ? std::nullopt : std::optional(std::move(ways_.front().order));
  }

 private:
  bool advance() {
    std::vector<Step> steps;
    int64_t looks = static_cast<int64_t>(graph_.problem.ops.size() / 8);  // copies of the ways
    for (size_t w = 0; w < ways_.size(); ++w) looks += add_steps(w, steps);
    if (!effort_.spend(looks)) return false;
    std::sort(steps.begin(), steps.end());
    std::vector<Way> next;
    std::unordered_set<uint64_t> seen;
    for (const Step& step : steps) {
      if (next.size() == kWidth) break;
      const Way& from = ways_[step.way];
      const uint64_t hash = from.hash ^ mixed(static_cast<uint64_t>(step.op));
      if (seen.insert(hash).second) next.push_back(extended(from, step, hash));
    }
    ways_ = std::move(next);
    return true;
  }

  // What costs nothing runs at once, see exact.cpp.
  int64_t add_steps(size_t index, std::vector<Step>& steps) const {
    const Way& way = ways_[index];
    const size_t before = steps.size();
    int64_t looks = 0;
    for (int32_t op : way.ready) {
      if (++looks > static_cast<int64_t>(kMostLooks)) break;
      const LiveSet::Effect effect = way.live.effect_of(op);
      if (effect.during_bytes >= below_bytes_) continue;
      const bool is_free =
          effect.during_bytes <= way.peak_bytes && effect.after_bytes <= way.live.bytes();
      if (is_free) steps.resize(before);
      steps.push_back({.peak_bytes = std::max(way.peak_bytes, effect.during_bytes),
                       .live_bytes = effect.after_bytes,
                       .way = index,
                       .op = op});
      if (is_free) break;
    }
    return looks;
  }

  Way extended(const Way& from, const Step& step, uint64_t hash) const {
    Way way = from;
    way.live.run(step.op);
    way.order.push_back(step.op);
    std::erase(way.ready, step.op);
    for (int32_t next : graph_.successors[static_cast<size_t>(step.op)]) {
      if (!way.live.is_ready(next)) continue;
      way.ready.insert(std::lower_bound(way.ready.begin(), way.ready.end(), next), next);
    }
    way.peak_bytes = step.peak_bytes;
    way.hash = hash;
    return way;
  }

  const OrderGraph& graph_;
  int64_t below_bytes_;
  OrderEffort& effort_;
  std::vector<Way> ways_;
};

}  // namespace

std::optional<std::vector<int32_t>> beam_order(const OrderGraph& graph, int64_t below_bytes,
                                               OrderEffort& effort) {
  return Beam(graph, below_bytes, effort).run();
}

}  // namespace trainscope::memplan
