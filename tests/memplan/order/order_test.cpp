// Orders of ops: never worse than the given one, and the best where every order can be tried.
#include "memplan/order/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "memplan/order/live_set.h"
#include "memplan/order/search.h"
#include "memplan/order/timeline.h"
#include "tests/memplan/dice.h"

namespace trainscope::memplan::testing {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

std::vector<int32_t> given_order(const OrderProblem& problem) {
  std::vector<int32_t> order(problem.ops.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Ops that make one or two values and read up to three of the earlier ones.
OrderProblem random_problem(Dice& dice, int32_t ops, int32_t phases) {
  OrderProblem problem;
  const auto add_value = [&] {
    problem.values.push_back({.bytes = dice.between(0, 12), .kept = dice.between(0, 7) == 0});
    return static_cast<int32_t>(problem.values.size() - 1);
  };
  for (int64_t i = dice.between(0, 2); i > 0; --i) add_value();
  for (int32_t i = 0; i < ops; ++i) {
    OrderOp op{.workspace_bytes = dice.between(0, 3) == 0 ? dice.between(1, 9) : 0,
               .phase = i * phases / ops};
    const auto there = static_cast<int64_t>(problem.values.size());
    for (int64_t r = dice.between(0, 3); r > 0 && there > 0; --r) {
      const auto value =
          static_cast<int32_t>(dice.between(std::max<int64_t>(0, there - 9), there - 1));
      if (std::count(op.reads.begin(), op.reads.end(), value) == 0) op.reads.push_back(value);
    }
    for (int64_t m = dice.between(1, 2); m > 0; --m) op.makes.push_back(add_value());
    if (i > 0 && dice.between(0, 9) == 0) {
      op.after.push_back(static_cast<int32_t>(dice.between(0, i - 1)));
    }
    for (int32_t read : op.reads) {
      if (dice.between(0, 2) > 0) continue;
      const int32_t made = op.makes.front();
      problem.values[static_cast<size_t>(made)].bytes =
          problem.values[static_cast<size_t>(read)].bytes;
      op.in_place.push_back({.read = read, .made = made});
    }
    problem.ops.push_back(std::move(op));
  }
  return problem;
}

// Bytes alive while the op at `at` runs, straight from what the words say: a value is there from
// the op that makes it to the last that reads it, or throughout.
int64_t plain_bytes(const OrderProblem& problem, const std::vector<int32_t>& order, size_t at) {
  const auto position = [&order](int32_t op) {
    return static_cast<size_t>(std::find(order.begin(), order.end(), op) - order.begin());
  };
  int64_t bytes = problem.ops[static_cast<size_t>(order[at])].workspace_bytes;
  std::vector<bool> dies(problem.values.size(), false);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    size_t first = 0;
    size_t last = 0;
    bool used = problem.values[v].kept;
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      const size_t when = position(static_cast<int32_t>(op));
      for (int32_t read : problem.ops[op].reads) {
        if (static_cast<size_t>(read) == v) last = std::max(last, when);
        used = used || static_cast<size_t>(read) == v;
      }
      for (int32_t made : problem.ops[op].makes) {
        if (static_cast<size_t>(made) != v) continue;
        first = when;
        last = std::max(last, when);
        used = true;
      }
    }
    if (problem.values[v].kept) last = order.size();
    dies[v] = used && last == at;
    if (used && first <= at && at <= last) bytes += problem.values[v].bytes;
  }
  std::vector<int32_t> taken;
  for (const OrderInPlace& pair : problem.ops[static_cast<size_t>(order[at])].in_place) {
    const auto is_taken = [&taken](int32_t v) {
      return std::count(taken.begin(), taken.end(), v) > 0;
    };
    if (!dies[static_cast<size_t>(pair.read)] || is_taken(pair.read) || is_taken(pair.made)) {
      continue;
    }
    taken.push_back(pair.read);
    taken.push_back(pair.made);
    bytes -= problem.values[static_cast<size_t>(pair.made)].bytes;
  }
  return bytes;
}

// The lowest peak of all orders.
class EveryOrder {
 public:
  explicit EveryOrder(const OrderProblem& problem) : problem_(problem), graph_(problem) {
    walk(LiveSet(graph_), 0, 0);
  }
  int64_t best = std::numeric_limits<int64_t>::max();

 private:
  void walk(const LiveSet& live, uint64_t ran, int64_t peak) {
    bool any = false;
    int32_t phase = std::numeric_limits<int32_t>::max();
    for (size_t op = 0; op < problem_.ops.size(); ++op) {
      if ((ran >> op & 1) == 0) phase = std::min(phase, problem_.ops[op].phase);
    }
    for (size_t op = 0; op < problem_.ops.size(); ++op) {
      const auto id = static_cast<int32_t>(op);
      if ((ran >> op & 1) != 0) continue;
      any = true;
      if (problem_.ops[op].phase != phase || !live.is_ready(id)) continue;
      LiveSet next = live;
      const int64_t during = live.effect_of(id).during_bytes;
      next.run(id);
      walk(next, ran | uint64_t{1} << op, std::max(peak, during));
    }
    if (!any) best = std::min(best, peak);
  }

  const OrderProblem& problem_;
  OrderGraph graph_;
};

// Forward and backward of a chain of layers: each backward op makes the gradient that the next one
// reads, and each weight-gradient op, given at the very end, frees what its layer kept.
OrderProblem chain(int32_t layers) {
  constexpr int64_t kActivation = 100;
  constexpr int64_t kWeight = 3;
  OrderProblem problem;
  problem.values.push_back({.bytes = kActivation});
  for (int32_t i = 0; i < layers; ++i) {
    problem.values.push_back({.bytes = kActivation});
    problem.ops.push_back({.reads = {i}, .makes = {i + 1}});
  }
  int32_t gradient = layers;
  std::vector<OrderOp> weights;
  for (int32_t i = layers - 1; i >= 0; --i) {
    const auto made = static_cast<int32_t>(problem.values.size());
    problem.values.push_back({.bytes = kActivation});
    problem.ops.push_back({.reads = {gradient}, .makes = {made}, .phase = 1});
    problem.values.push_back({.bytes = kWeight, .kept = true});
    weights.push_back({.reads = {i, gradient}, .makes = {made + 1}, .phase = 1});
    gradient = made;
  }
  for (OrderOp& op : weights) problem.ops.push_back(std::move(op));
  return problem;
}

}  // namespace

TEST_CASE("order_profile: bytes are alive from the op that makes them to the last reader") {
  Dice dice(1);
  for (int round = 0; round < 300; ++round) {
    const OrderProblem problem = random_problem(dice, 9, 2);
    REQUIRE(find_order_problem_error(problem) == std::nullopt);
    const std::vector<int32_t> order = given_order(problem);
    const std::vector<int64_t> profile = order_profile(problem, order);
    for (size_t at = 0; at < order.size(); ++at) {
      REQUIRE(profile[at] == plain_bytes(problem, order, at));
    }
  }
}

TEST_CASE("improve_order: the best of all orders of small problems") {
  Dice dice(2);
  int lower = 0;
  for (int round = 0; round < 400; ++round) {
    const OrderProblem problem = random_problem(dice, static_cast<int32_t>(dice.between(1, 8)),
                                                static_cast<int32_t>(dice.between(1, 3)));
    const OrderResult found = improve_order(problem);
    REQUIRE(found.message == "");
    REQUIRE(find_order_error(problem, found.order) == std::nullopt);
    REQUIRE(found.peak_bytes == order_peak_bytes(problem, found.order));
    REQUIRE(found.peak_bytes == EveryOrder(problem).best);
    REQUIRE(found.proven);
    if (found.peak_bytes < found.given_peak_bytes) ++lower;
    if (found.peak_bytes == found.given_peak_bytes) {
      REQUIRE(found.order == given_order(problem));
    }
  }
  CHECK(lower > 50);
}

TEST_CASE("exact_order: the best order of a window, whatever is around it") {
  Dice dice(3);
  for (int round = 0; round < 200; ++round) {
    const OrderProblem problem = random_problem(dice, 20, 1);
    const OrderGraph graph(problem);
    const Timeline timeline(graph, given_order(problem));
    const auto begin = static_cast<size_t>(dice.between(0, 12));
    const Subproblem subproblem = timeline.cut(begin, begin + 8);
    REQUIRE(find_order_problem_error(subproblem.problem) == std::nullopt);
    const std::vector<int64_t> local =
        order_profile(subproblem.problem, given_order(subproblem.problem));
    int64_t peak = 0;
    for (size_t i = 0; i < local.size(); ++i) {
      REQUIRE(local[i] + subproblem.base_bytes == timeline.during_bytes(begin + i));
      peak = std::max(peak, local[i]);
    }
    OrderEffort effort{.left = 1'000'000};
    const ExactOrder found = exact_order(OrderGraph(subproblem.problem), peak, effort);
    REQUIRE(found.complete);
    const int64_t best = EveryOrder(subproblem.problem).best;
    if (found.order.empty()) {
      REQUIRE(best == peak);
    } else {
      REQUIRE(order_peak_bytes(subproblem.problem, found.order) == best);
      REQUIRE(best < peak);
    }
  }
}

TEST_CASE("improve_order: larger problems get no worse, and no order is below the certain bytes") {
  Dice dice(4);
  for (int round = 0; round < 20; ++round) {
    const OrderProblem problem = random_problem(dice, static_cast<int32_t>(dice.between(20, 400)),
                                                static_cast<int32_t>(dice.between(1, 3)));
    const OrderResult found = improve_order(problem);
    REQUIRE(find_order_error(problem, found.order) == std::nullopt);
    REQUIRE(found.peak_bytes == order_peak_bytes(problem, found.order));
    REQUIRE(found.peak_bytes <= found.given_peak_bytes);
    const OrderGraph graph(problem);
    const Timeline timeline(graph, found.order);
    for (size_t at = 0; at < found.order.size(); ++at) {
      REQUIRE(timeline.certain_bytes(at) <= timeline.during_bytes(at));
    }
    REQUIRE(improve_order(problem).order == found.order);
  }
}

TEST_CASE("improve_order: asked to stop it leaves the order as it is") {
  Dice dice(4);
  std::stop_source stop;
  stop.request_stop();
  int improvable = 0;
  for (int round = 0; round < 5; ++round) {
    const OrderProblem problem = random_problem(dice, 100, 2);
    const OrderResult stopped = improve_order(problem, {.stop = stop.get_token()});
    CHECK(find_order_error(problem, stopped.order) == std::nullopt);
    CHECK(stopped.peak_bytes == stopped.given_peak_bytes);
    if (improve_order(problem).peak_bytes < stopped.peak_bytes) ++improvable;
  }
  CHECK(improvable > 0);
}

TEST_CASE("beam_order and list_schedules: orders that work, beams below the limit") {
  Dice dice(5);
  int beams = 0;
  for (int round = 0; round < 60; ++round) {
    const OrderProblem problem = random_problem(dice, 60, 1);
    const OrderGraph graph(problem);
    OrderEffort effort{.left = 10'000'000};
    for (const std::vector<int32_t>& order : list_schedules(graph, effort)) {
      REQUIRE(find_order_error(problem, order) == std::nullopt);
    }
    const int64_t peak = order_peak_bytes(problem, given_order(problem));
    const auto found = beam_order(graph, peak, effort);
    if (!found) continue;
    ++beams;
    REQUIRE(find_order_error(problem, *found) == std::nullopt);
    REQUIRE(order_peak_bytes(problem, *found) < peak);
  }
  CHECK(beams > 30);
}

TEST_CASE("improve_order: weight gradients run as soon as they free what they read") {
  const OrderProblem problem = chain(500);
  const OrderResult found = improve_order(problem);
  CHECK(found.given_peak_bytes >= 100'000);
  // All activations and the first weight gradient; its activation then makes room for a gradient.
  CHECK(found.peak_bytes == 501 * 100 + 3);
  CHECK(find_order_error(problem, found.order) == std::nullopt);
}

TEST_CASE("find_order_problem_error: names what is wrong") {
  const auto error = [](const OrderProblem& problem) {
    return find_order_problem_error(problem).value_or("");
  };
  CHECK(error({}) == "");
  CHECK(error({.values = {{.bytes = -1}}}) == "the bytes of a value are no size");
  CHECK(error({.values = {{.bytes = 1}}, .ops = {{.reads = {1}}}}) ==
        "op #0 reads a value that does not exist");
  CHECK(error({.values = {{.bytes = 1}}, .ops = {{.reads = {0, 0}}}}) ==
        "op #0 reads value #0 twice");
  CHECK(error({.values = {{.bytes = 1}}, .ops = {{.reads = {0}}, {.makes = {0}}}}) ==
        "op #0 reads value #0, which is made later");
  CHECK(error({.values = {{.bytes = 1}}, .ops = {{.makes = {0}}, {.makes = {0}}}}) ==
        "value #0 is made twice");
  CHECK(error({.values = {}, .ops = {{.after = {0}}}}) == "op #0 comes after no earlier op");
  CHECK(error({.values = {}, .ops = {{.phase = 1}, {.phase = 0}}}) ==
        "op #1 is of an earlier phase than the op before it");
  CHECK(error({.values = {}, .ops = {{.in_place = {{.read = 0, .made = 0}}}}}) ==
        "op #0 shares bytes of values it has not");
  CHECK(error({.values = {}, .ops = {{.workspace_bytes = -1}}}) ==
        "the workspace of op #0 is no size");
}

TEST_CASE("find_order_error: names what is wrong") {
  const OrderProblem problem{.values = {{.bytes = 1}},
                             .ops = {{.makes = {0}}, {.reads = {0}}, {.phase = 1}}};
  const auto error = [&problem](std::vector<int32_t> order) {
    return find_order_error(problem, order).value_or("");
  };
  CHECK(error({0, 1, 2}) == "");
  CHECK(error({1, 0, 2}) == "op #1 runs before op #0");
  CHECK(error({0, 2, 1}) == "op #1 runs after a later phase");
  CHECK(error({0, 1}) == "an op is missing");
  CHECK(error({0, 1, 1}) == "op #1 runs twice");
  CHECK(error({0, 1, 3}) == "an op does not exist");
}

}  // namespace trainscope::memplan::testing
