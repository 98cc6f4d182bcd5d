// Tests of the planner's state: what it predicts is what its plans do when replayed.
#include "memplan/remat/retention.h"

#include <doctest/doctest.h>

#include "memplan/remat/drop_set.h"
#include "memplan/remat/random.h"
#include "memplan/remat/search.h"
#include "memplan/remat/seeds.h"
#include "tests/memplan/remat/problems.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;

const Deadline kNever;

// Replayed, the plan is valid and costs what the state says.
void check_state(const RematProblem& problem, const Retention& state) {
  const RematReplay replay = simulate(problem, state.plan());
  REQUIRE(replay.message == "");
  CHECK(replay.peak_bytes == state.peak_bytes());
  CHECK(static_cast<double>(replay.time) == state.cost().time);
}

TEST_CASE("bit rows: flips and scans agree with a look at every bit") {
  Random random(3);
  BitRows bits(3, 200);
  std::vector<bool> expected(200);
  for (int round = 0; round < 300; ++round) {
    const int32_t first = random.between(0, 199);
    const int32_t last = random.between(first, 199);
    bits.flip(1, first, last);
    for (int32_t i = first; i <= last; ++i) {
      expected[static_cast<std::size_t>(i)] = !expected[static_cast<std::size_t>(i)];
    }
    const int32_t from = random.between(0, 199);
    int32_t next = from;
    while (next < 200 && !expected[static_cast<std::size_t>(next)]) ++next;
    int32_t clear = from;
    while (clear < 200 && expected[static_cast<std::size_t>(clear)]) ++clear;
    int32_t previous = from;
    while (previous >= 0 && !expected[static_cast<std::size_t>(previous)]) --previous;
    CHECK(bits.next_set(1, from) == (next < 200 ? next : -1));
    if (clear < 200) CHECK(bits.next_clear(1, from) == clear);
    CHECK(bits.previous_set(1, from) == previous);
    CHECK(bits.test(1, from) == expected[static_cast<std::size_t>(from)]);
  }
  CHECK(bits.next_set(0, 0) == -1);
  CHECK(bits.previous_set(2, 199) == -1);
}

TEST_CASE("retention: without recompute it is the plan that saves all") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RematProblem problem = testing::random_graph(seed, {.nodes = 30, .workspace = true});
    const RematGraph graph(problem);
    Retention state(graph, 0);
    state.load(hold_all(graph));
    check_state(problem, state);
    const RematReplay saved = simulate(problem, save_all_plan(problem));
    CHECK(state.peak_bytes() == saved.peak_bytes);
    CHECK(state.cost().time == static_cast<double>(saved.time));
  }
}

TEST_CASE("retention: a change costs what a fresh look at the whole says") {
  int accepted = 0;
  int taken = 0;  // within a limit
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RematProblem problem = testing::random_graph(seed, {.nodes = 24, .workspace = true});
    const RematGraph graph(problem);
    Retention state(graph, 100);
    state.load(hold_all(graph));
    Retention fresh(graph, 100);
    Random random(seed);
    for (int i = 0; i < 60; ++i) {
      const int32_t node = random.between(0, graph.size() - 3);
      const int32_t stage = random.between(node + 1, graph.size() - 1);
      const bool held = state.held(node, stage);
      const int32_t last = held ? state.end_of_hold(node, stage) : state.next_touch(node, stage);
      if (last < 0) continue;
      const HoldChange change{
          .node = node, .first = state.previous_touch(node, stage - 1) + 1, .last = last};
      if (held && state.next_touch(node, change.first) < change.last) continue;
      const RematCost before = state.cost();
      const BitRows held_before = state.matrix();
      const RematCost alone = state.propose(change);
      state.reject();
      const RematLimit limit{
          .byte_price = 0.5, .most_cost = random.between(-40, 40) * 1.0, .most_time = 40};
      const double time = alone.time - before.time;
      const double bytes = static_cast<double>(alone.excess_bytes - before.excess_bytes);
      const bool within = time <= limit.most_time && time + 0.5 * bytes <= limit.most_cost;
      REQUIRE(state.propose({&change, 1}, limit) == within);
      (within ? taken : refused) += 1;
      if (within) state.reject();
      CHECK(state.matrix() == held_before);
      state.mark();
      const RematCost proposed = state.propose(change);
      if (random.between(0, 2) == 0) {
        state.reject();
        CHECK(state.cost().time == before.time);
        CHECK(state.cost().excess_bytes == before.excess_bytes);
      } else {
        state.accept();
        ++accepted;
        // Giving up useless holds afterwards only helps.
        CHECK(state.cost().time <= proposed.time);
        CHECK(state.cost().excess_bytes <= proposed.excess_bytes);
      }
      CHECK(state.marked() == held_before);
      fresh.load(state.matrix());
      CHECK(fresh.matrix() == state.matrix());
      CHECK(fresh.cost().time == state.cost().time);
      CHECK(fresh.cost().excess_bytes == state.cost().excess_bytes);
      CHECK(fresh.peak_bytes() == state.peak_bytes());
    }
    check_state(problem, state);
  }
  CHECK(accepted > 300);
  CHECK(taken > 100);
  CHECK(refused > 100);
}

TEST_CASE("retention: dropping values at a frontier costs what the drop simulator says") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RematProblem problem = testing::chain_step(12, seed);
    const RematGraph graph(problem);
    const int32_t frontier = graph.first_backward() - 1;
    DropSimulator simulator(graph, frontier);
    Random random(seed);
    std::vector<int32_t> dropped;
    for (int32_t node = 0; node <= frontier; ++node) {
      if (random.between(0, 1) == 0) dropped.push_back(node);
    }
    const DropCost cost = simulator.run(dropped);
    Retention state(graph, 0);
    state.load(hold_with_reruns(graph, frontier, dropped));
    check_state(problem, state);
    CHECK(cost.peak_bytes == state.peak_bytes());
    CHECK(cost.time == state.cost().time);
  }
}

TEST_CASE("search: repair, filling and annealing leave valid plans within the budget") {
  int kept = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RematProblem problem =
        testing::random_graph(seed, {.nodes = 40, .banned = true, .workspace = true});
    const RematGraph graph(problem);
    Retention state(graph, 0);
    state.load(hold_all(graph));
    const int64_t peak = state.peak_bytes();
    for (const int percent : {95, 85, 75}) {
      state.load(hold_all(graph));
      state.set_budget(peak * percent / 100);
      RematSearch search(state, seed, kNever);
      const bool repaired = search.repair();
      if (repaired) search.fill();
      const double time = state.cost().time;
      check_state(problem, state);
      search.anneal({.iterations = 3000, .first_temperature = 10, .last_temperature = 0.1});
      check_state(problem, state);
      if (!repaired) continue;
      ++kept;
      CHECK(state.peak_bytes() <= state.budget_bytes());
      CHECK(state.cost().time <= time);
    }
  }
  CHECK(kept > 30);
}

}  // namespace
}  // namespace trainscope::memplan
