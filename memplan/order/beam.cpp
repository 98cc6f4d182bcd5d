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

// One order so far, of some of the ops.
struct PartialOrder {
  LiveSet live;
  std::vector<int32_t> order;
  std::vector<int32_t> ready;  // ascending
  int64_t peak_bytes = 0;
  uint64_t hash = 0;  // of the set that ran
};

// A partial order with one op more.
struct Extension {
  int64_t peak_bytes = 0;
  int64_t live_bytes = 0;
  size_t from = 0;  // which partial order
  int32_t op = 0;

  friend auto operator<=>(const Extension&, const Extension&) = default;
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
    beam_.push_back({.live = LiveSet(graph_), .order = {}, .ready = {}});
    for (size_t op = 0; op < count; ++op) {
      const auto id = static_cast<int32_t>(op);
      if (beam_[0].live.is_ready(id)) beam_[0].ready.push_back(id);
    }
    for (size_t i = 0; i < count && !beam_.empty(); ++i) {
      if (!advance()) return std::nullopt;
    }
    return beam_.empty() ? std::nullopt : std::optional(std::move(beam_.front().order));
  }

 private:
  bool advance() {
    std::vector<Extension> extensions;
    int64_t looks = static_cast<int64_t>(graph_.problem.ops.size() / 8);  // copies of the beam
    for (size_t i = 0; i < beam_.size(); ++i) looks += add_extensions(i, extensions);
    if (!effort_.spend(looks)) return false;
    std::sort(extensions.begin(), extensions.end());
    std::vector<PartialOrder> next;
    std::unordered_set<uint64_t> seen;
    for (const Extension& each : extensions) {
      if (next.size() == kWidth) break;
      const PartialOrder& from = beam_[each.from];
      const uint64_t hash = from.hash ^ mixed(static_cast<uint64_t>(each.op));
      if (seen.insert(hash).second) next.push_back(extended(from, each, hash));
    }
    beam_ = std::move(next);
    return true;
  }

  // What costs nothing runs at once, see exact.cpp.
  int64_t add_extensions(size_t index, std::vector<Extension>& extensions) const {
    const PartialOrder& from = beam_[index];
    const size_t before = extensions.size();
    int64_t looks = 0;
    for (int32_t op : from.ready) {
      if (++looks > static_cast<int64_t>(kMostLooks)) break;
      const LiveSet::Effect effect = from.live.effect_of(op);
      if (effect.during_bytes >= below_bytes_) continue;
      const bool is_free =
          effect.during_bytes <= from.peak_bytes && effect.after_bytes <= from.live.bytes();
      if (is_free) extensions.resize(before);
      extensions.push_back({.peak_bytes = std::max(from.peak_bytes, effect.during_bytes),
                            .live_bytes = effect.after_bytes,
                            .from = index,
                            .op = op});
      if (is_free) break;
    }
    return looks;
  }

  PartialOrder extended(const PartialOrder& from, const Extension& by, uint64_t hash) const {
    PartialOrder longer = from;
    longer.live.run(by.op);
    longer.order.push_back(by.op);
    std::erase(longer.ready, by.op);
    for (int32_t next : graph_.successors[static_cast<size_t>(by.op)]) {
      if (!longer.live.is_ready(next)) continue;
      longer.ready.insert(std::lower_bound(longer.ready.begin(), longer.ready.end(), next), next);
    }
    longer.peak_bytes = by.peak_bytes;
    longer.hash = hash;
    return longer;
  }

  const OrderGraph& graph_;
  int64_t below_bytes_;
  OrderEffort& effort_;
  std::vector<PartialOrder> beam_;
};

}  // namespace

std::optional<std::vector<int32_t>> beam_order(const OrderGraph& graph, int64_t below_bytes,
                                               OrderEffort& effort) {
  return Beam(graph, below_bytes, effort).run();
}

}  // namespace trainscope::memplan
