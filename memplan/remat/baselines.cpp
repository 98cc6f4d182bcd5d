// Prices what others would do.
#include "memplan/remat/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "memplan/at.h"
#include "memplan/remat/drop_set.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

constexpr size_t kShares = 100;
// PyTorch's knapsack counts bytes in 1/10000 of all saved bytes.
constexpr size_t kSlots = 10'000;

// Forward values that backward nodes read.
std::vector<int32_t> saved_values(const RematGraph& graph) {
  std::vector<int32_t> saved;
  for (int32_t node = 0; node < graph.first_backward(); ++node) {
    if (graph.last_use(node) >= graph.first_backward()) saved.push_back(node);
  }
  return saved;
}

class Pricer {
 public:
  explicit Pricer(const RematGraph& graph)
      : graph_(graph), simulator_(graph, graph.first_backward() - 1) {}

  FrontPoint price(std::vector<int32_t> dropped) {
    graph_.check_stop();
    std::erase_if(dropped, [&](int32_t node) { return !graph_.may_rerun(node); });
    const DropCost cost = simulator_.run(dropped);
    return {.peak_bytes = cost.peak_bytes, .time = cost.time, .dropped = std::move(dropped)};
  }

 private:
  const RematGraph& graph_;
  DropSimulator simulator_;
};

std::vector<int32_t> all_but_checkpoints(const RematGraph& graph) {
  const int32_t count = graph.first_backward();
  const auto segments = static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(count))));
  const int32_t stride = std::max(1, count / std::max(1, segments));
  std::vector<int32_t> dropped;
  for (int32_t node = 0; node < count; ++node) {
    if ((node + 1) % stride != 0) dropped.push_back(node);
  }
  return dropped;
}

// 0-1 knapsack for all capacities at once; taken_[i]: a bit for each capacity, whether item i is in
// the best choice of the items up to i.
class Knapsack {
 public:
  Knapsack(const RematGraph& graph, std::vector<int32_t> items) : items_(std::move(items)) {
    double total = 1;
    for (const int32_t item : items_) total += static_cast<double>(graph.bytes(item));
    std::vector<double> best(kWords * kWordBits, 0);
    std::vector<double> with(best);
    for (const int32_t item : items_) {
      graph.check_stop();
      const double share = static_cast<double>(graph.bytes(item)) / total;
      slots_.push_back(static_cast<size_t>(std::ceil(share * static_cast<double>(kSlots))));
      const double time = graph.time(item);
      with = best;
      for (size_t capacity = std::max<size_t>(1, slots_.back()); capacity < with.size();
           ++capacity) {
        with[capacity] = std::max(best[capacity], best[capacity - slots_.back()] + time);
      }
      taken_.push_back(bits_of_more(with, best));
      best.swap(with);
    }
  }

  std::vector<int32_t> left_out(size_t capacity) const {
    std::vector<int32_t> out;
    for (size_t i = items_.size(); i-- > 0;) {
      if ((taken_[i][capacity / kWordBits] >> (capacity % kWordBits) & 1u) != 0) {
        capacity -= slots_[i];
      } else {
        out.push_back(items_[i]);
      }
    }
    return out;
  }

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kWords = kSlots / kWordBits + 1;
  using Bits = std::array<std::uint64_t, kWords>;

  static Bits bits_of_more(const std::vector<double>& with, const std::vector<double>& without) {
    Bits bits{};
    for (size_t word = 0; word < kWords; ++word) {
      for (size_t i = 0; i < kWordBits; ++i) {
        const size_t capacity = word * kWordBits + i;
        bits[word] |= std::uint64_t{with[capacity] > without[capacity]} << i;
      }
    }
    return bits;
  }

  std::vector<int32_t> items_;
  std::vector<size_t> slots_;
  std::vector<Bits> taken_;
};

// What is not saved is recomputed, and so is all that it needs and that is not saved.
std::vector<int32_t> all_but(const RematGraph& graph, const std::vector<int32_t>& left_out,
                             const std::vector<int32_t>& saved) {
  std::vector<bool> keep(at(graph.size()));
  for (const int32_t node : saved) keep[at(node)] = true;
  for (const int32_t node : left_out) keep[at(node)] = false;
  std::vector<int32_t> dropped;
  for (int32_t node = 0; node < graph.first_backward(); ++node) {
    if (!keep[at(node)]) dropped.push_back(node);
  }
  return dropped;
}

}  // namespace

std::vector<RematBaseline> remat_baselines(const RematGraph& graph) {
  if (graph.first_backward() < 1 || graph.first_backward() >= graph.size()) return {};
  Pricer pricer(graph);
  RematBaseline knapsack{.name = "knapsack"};
  const std::vector<int32_t> saved = saved_values(graph);
  const Knapsack choice(graph, saved);
  std::vector<int32_t> before;
  for (size_t share = 0; share <= kShares; ++share) {
    std::vector<int32_t> left_out = choice.left_out(share * kSlots / kShares);
    if (share > 0 && left_out == before) continue;
    knapsack.points.push_back(
        pricer.price(left_out.empty() ? left_out : all_but(graph, left_out, saved)));
    before = std::move(left_out);
  }
  return {{.name = "none", .points = {pricer.price({})}},
          {.name = "sqrt_n", .points = {pricer.price(all_but_checkpoints(graph))}},
          std::move(knapsack)};
}

std::optional<double> best_time_within(const RematBaseline& baseline, int64_t budget_bytes) {
  std::optional<double> best;
  for (const FrontPoint& point : baseline.points) {
    if (point.peak_bytes <= budget_bytes && (!best || point.time < *best)) best = point.time;
  }
  return best;
}

}  // namespace trainscope::memplan
