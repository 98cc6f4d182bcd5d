// Lowers the peak of an order: exact windows around it, beams over wider ones, list schedules of
// the whole phase.
#include "memplan/order/order.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "memplan/order/search.h"
#include "memplan/order/timeline.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

constexpr int64_t kLooks = 2'000'000;      // of any problem; some 50 ms
constexpr int64_t kLooksPerOp = 400;       // more for large ones
constexpr int64_t kWindowLooks = 200'000;  // of one window
constexpr std::array<size_t, 3> kExactOps = {16, 32, kMostExactOps};
constexpr std::array<size_t, 2> kBeamOps = {160, 400};

class Improver {
 public:
  Improver(const OrderGraph& graph, const OrderOptions& options)
      : graph_(graph), timeline_(graph, given(graph)) {
    const auto count = static_cast<int64_t>(graph.problem.ops.size());
    effort_.left = options.most_looks > 0 ? options.most_looks : kLooks + kLooksPerOp * count;
    effort_.stop = options.stop;
  }

  OrderResult run() {
    OrderResult result{.order = timeline_.order(), .given_peak_bytes = timeline_.peak_bytes()};
    result.peak_bytes = result.given_peak_bytes;
    while (!graph_.problem.ops.empty()) {
      const size_t at = timeline_.peak_position();
      result.proven = timeline_.certain_bytes(at) >= timeline_.during_bytes(at);
      // Each round goes through the whole order a few times.
      const auto round = 4 * static_cast<int64_t>(graph_.problem.ops.size());
      if (result.proven || !effort_.spend(round)) break;
      if (!improve_phase(at) && !improve_windows(at)) break;
    }
    result.proven = result.proven || proven_ || graph_.problem.ops.empty();
    if (timeline_.peak_bytes() >= result.given_peak_bytes) return result;
    result.order = timeline_.order();
    result.peak_bytes = timeline_.peak_bytes();
    return result;
  }

 private:
  static std::vector<int32_t> given(const OrderGraph& graph) {
    std::vector<int32_t> order(graph.problem.ops.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  struct Window {
    size_t begin = 0;
    size_t end = 0;
  };

  Window phase_of(size_t at) const {
    const auto phase = [this](size_t i) { return graph_.op(timeline_.order()[i]).phase; };
    Window window{.begin = at, .end = at + 1};
    while (window.begin > 0 && phase(window.begin - 1) == phase(at)) --window.begin;
    while (window.end < timeline_.order().size() && phase(window.end) == phase(at)) ++window.end;
    return window;
  }

  // Of `length` ops around a position: as many before it as after, most before, most after.
  static std::vector<Window> windows(const Window& phase, size_t at, size_t length) {
    if (phase.end - phase.begin <= length) return {phase};
    std::vector<Window> list;
    for (size_t before : {length / 2, length - length / 8, length / 8}) {
      size_t begin = at > phase.begin + before ? at - before : phase.begin;
      begin = std::min(begin, phase.end - length);
      list.push_back({.begin = begin, .end = begin + length});
    }
    return list;
  }

  bool improve_windows(size_t at) {
    const Window phase = phase_of(at);
    for (size_t length : kExactOps) {
      for (const Window& window : windows(phase, at, length)) {
        if (improve_exactly(window, phase)) return true;
      }
      if (phase.end - phase.begin <= length) return false;
    }
    for (size_t length : kBeamOps) {
      for (const Window& window : windows(phase, at, length)) {
        if (improve_by_beam(window)) return true;
      }
      if (phase.end - phase.begin <= length) return false;
    }
    return false;
  }

  int64_t peak_of(const Window& window) const {
    int64_t peak = 0;
    for (size_t i = window.begin; i < window.end; ++i) {
      peak = std::max(peak, timeline_.during_bytes(i));
    }
    return peak;
  }

  // What one window may spend of what is left.
  OrderEffort share() const {
    return {.left = std::min(kWindowLooks, effort_.left), .stop = effort_.stop};
  }
  void charge(const OrderEffort& before, const OrderEffort& after) {
    effort_.left -= before.left - after.left;
  }

  bool improve_exactly(const Window& window, const Window& phase) {
    const Subproblem subproblem = timeline_.cut(window.begin, window.end);
    const OrderEffort before = share();
    OrderEffort after = before;
    const ExactOrder found =
        exact_order(OrderGraph(subproblem.problem), peak_of(window) - subproblem.base_bytes, after);
    charge(before, after);
    const bool whole = window.begin == phase.begin && window.end == phase.end;
    if (found.order.empty()) {
      proven_ = proven_ || (whole && found.complete);
      return false;
    }
    timeline_.replace(window.begin, found.order);
    return true;
  }

  bool improve_by_beam(const Window& window) {
    const Subproblem subproblem = timeline_.cut(window.begin, window.end);
    const OrderEffort before = share();
    OrderEffort after = before;
    const auto found =
        beam_order(OrderGraph(subproblem.problem), peak_of(window) - subproblem.base_bytes, after);
    charge(before, after);
    if (!found) return false;
    timeline_.replace(window.begin, *found);
    return true;
  }

  // Once for each phase: the schedules do not depend on what the windows found.
  bool improve_phase(size_t at) {
    const Window phase = phase_of(at);
    if (std::find(scheduled_.begin(), scheduled_.end(), phase.begin) != scheduled_.end()) {
      return false;
    }
    scheduled_.push_back(phase.begin);
    const Subproblem subproblem = timeline_.cut(phase.begin, phase.end);
    const OrderGraph graph(subproblem.problem);
    int64_t least = peak_of(phase) - subproblem.base_bytes;
    const std::vector<int32_t>* best = nullptr;
    const std::vector<std::vector<int32_t>> orders = list_schedules(graph, effort_);
    for (const std::vector<int32_t>& order : orders) {
      const int64_t peak = order_peak_bytes(subproblem.problem, order);
      if (peak >= least) continue;
      least = peak;
      best = &order;
    }
    if (best == nullptr) return false;
    timeline_.replace(phase.begin, *best);
    return true;
  }

  const OrderGraph& graph_;
  Timeline timeline_;
  OrderEffort effort_;
  std::vector<size_t> scheduled_;  // where the phases begin that were
  bool proven_ = false;
};

}  // namespace

OrderResult improve_order(const OrderProblem& problem, const OrderOptions& options) {
  if (const auto wrong = find_order_problem_error(problem)) return {.message = *wrong};
  const OrderGraph graph(problem);
  return Improver(graph, options).run();
}

}  // namespace trainscope::memplan
