// Tests of the cuts, the bounds, the front and the methods it is compared with.
#include "memplan/remat/front.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "memplan/remat/baselines.h"
#include "memplan/remat/certificate.h"
#include "memplan/remat/frontier_cut.h"
#include "memplan/remat/max_flow.h"
#include "memplan/remat/random.h"
#include "memplan/remat/retention.h"
#include "memplan/remat/search.h"
#include "tests/memplan/remat/problems.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

TEST_CASE("max flow: equals the smallest cut found by trying all") {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    constexpr int32_t kNodes = 7;
    struct Arc {
      int32_t from, to;
      int64_t capacity;
    };
    std::vector<Arc> arcs;
    MaxFlow flow(kNodes);
    for (int i = 0; i < 14; ++i) {
      arcs.push_back(
          {random.between(0, kNodes - 1), random.between(0, kNodes - 1), random.between(0, 9)});
      flow.set_capacity(flow.add_arc(arcs.back().from, arcs.back().to), arcs.back().capacity);
    }
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (unsigned side = 0; side < 1u << kNodes; ++side) {
      if ((side & 1u) == 0 || (side >> 1 & 1u) != 0) continue;  // source 0, sink 1
      int64_t cut = 0;
      for (const Arc& arc : arcs) {
        if ((side >> arc.from & 1u) != 0 && (side >> arc.to & 1u) == 0) cut += arc.capacity;
      }
      smallest = std::min(smallest, cut);
    }
    CHECK(flow.solve(0, 1) == smallest);
    CHECK(flow.on_source_side(0));
    CHECK_FALSE(flow.on_source_side(1));
  }
}

TEST_CASE("frontier cut: choices are nested, cheapest at their price, and bounded") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RematProblem problem = testing::chain_step(14, seed);
    const RematGraph graph(problem);
    FrontierCut cut(graph, {.frontier = graph.first_backward() - 1, .last = graph.size() - 1});
    const auto always = [](const FrontierChoice&, const FrontierChoice&) { return true; };
    const std::vector<FrontierChoice> choices = all_choices(cut, always);
    REQUIRE(choices.size() >= 2);
    const auto never = [](const FrontierChoice&, const FrontierChoice&) { return false; };
    CHECK(all_choices(cut, never).size() == 2);
    for (size_t i = 1; i < choices.size(); ++i) {
      CHECK(choices[i].saved_bytes < choices[i - 1].saved_bytes);
      CHECK(choices[i].rerun_time >= choices[i - 1].rerun_time);
      CHECK(std::includes(choices[i].rerun.begin(), choices[i].rerun.end(),
                          choices[i - 1].rerun.begin(), choices[i - 1].rerun.end()));
    }
    for (const double price : {0.1, 0.7, 3.0}) {
      const FrontierChoice best = cut.choose(price);
      const double cost = best.rerun_time + price * static_cast<double>(best.saved_bytes);
      CHECK(best.bound <= cost);
      CHECK(best.bound >= cost * (1 - 1e-6));
      for (const FrontierChoice& other : choices) {
        CHECK(other.rerun_time + price * static_cast<double>(other.saved_bytes) >= best.bound);
      }
    }
  }
}

TEST_CASE("certificate: grows as the budget shrinks, and ends where nothing fits") {
  const RematGraph graph(testing::chain_step(20, 4));
  const LeastBudget least = least_budget(graph);
  double before = std::numeric_limits<double>::infinity();
  CHECK(std::isinf(least_time(graph, least.bytes - 1, 8)));
  for (int64_t budget = least.bytes; budget < 4 * least.bytes; budget += least.bytes / 4) {
    const double time = least_time(graph, budget, 8);
    CHECK(time <= before);
    before = time;
  }
}

// Peaks fall, times rise, and each point is what a replay of its plan says.
void check_front(const RematProblem& problem, const RematGraph& graph, const RematFront& front) {
  const std::vector<FrontPoint>& points = front.points();
  REQUIRE(!points.empty());
  const RematReplay saved = simulate(problem, save_all_plan(problem));
  CHECK(points.front().peak_bytes <= saved.peak_bytes);  // less where reruns take no time
  CHECK(points.front().time == static_cast<double>(saved.time));
  Retention state(graph, 0);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      CHECK(points[i].peak_bytes < points[i - 1].peak_bytes);
      CHECK(points[i].time >= points[i - 1].time);
    }
    state.load(front.holds(graph, i));
    const RematReplay replay = simulate(problem, state.plan());
    REQUIRE(replay.message == "");
    // Holds that nobody reads are given up on the way, so the plan may be better.
    CHECK(replay.peak_bytes <= points[i].peak_bytes);
    CHECK(static_cast<double>(replay.time) <= points[i].time);
    CHECK(front.find(points[i].peak_bytes) == i);
  }
  CHECK(front.find(points.back().peak_bytes - 1) == points.size());
  CHECK(front.find(points.front().peak_bytes + 1) == 0);
}

// Each point of each baseline has one of the front that needs no more and takes no longer.
int check_not_beaten(const RematGraph& graph, const RematFront& front) {
  int compared = 0;
  for (const RematBaseline& baseline : remat_baselines(graph)) {
    for (const FrontPoint& point : baseline.points) {
      const size_t place = front.find(point.peak_bytes);
      REQUIRE(place < front.points().size());
      CHECK(front.points()[place].time <= point.time);
      ++compared;
    }
  }
  return compared;
}

TEST_CASE("front: monotone, and as it replays, on chains and random graphs") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const RematProblem& problem :
         {testing::chain_step(30, seed),
          testing::random_graph(seed, {.nodes = 60, .banned = true, .workspace = true})}) {
      const RematGraph graph(problem);
      check_front(problem, graph, RematFront(graph));
    }
  }
  const RematProblem one{.nodes = {{.id = 0, .bytes = 5, .time = 1}}};
  check_front(one, RematGraph(one), RematFront(RematGraph(one)));
  CHECK(RematFront(RematGraph({})).points().empty());
}

TEST_CASE("front: a transformer of 24 layers has 100 points, not beaten by other methods") {
  const RematProblem problem = testing::transformer_step({});
  const auto start = std::chrono::steady_clock::now();
  const RematGraph graph(problem);
  const RematFront front(graph);
  const double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  MESSAGE(front.points().size() << " points of " << problem.nodes.size() << " nodes in "
                                << milliseconds << " ms");
  CHECK(front.points().size() >= 100);
  check_front(problem, graph, front);
  CHECK(check_not_beaten(graph, front) > 50);
}

TEST_CASE("front: never beaten by another method, however few points are kept") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const RematProblem& problem :
         {testing::chain_step(static_cast<int>(10 + seed), seed),
          testing::training_step(seed, {.nodes = 40, .banned = true, .workspace = true})}) {
      const RematGraph graph(problem);
      const RematFront front(graph);
      check_front(problem, graph, front);
      compared += check_not_beaten(graph, front);
    }
  }
  CHECK(compared > 100);
  for (const std::int64_t layers : {1, 2, 5}) {
    const RematGraph graph(testing::transformer_step({.layers = layers}));
    for (const size_t most : {40, 600}) {
      const RematFront front(graph, {.most_points = most});
      CHECK(front.points().size() <= most);
      CHECK(check_not_beaten(graph, front) > 10);
    }
  }
}

TEST_CASE("front: filling a looked-up plan of a transformer saves time within the budget") {
  const RematProblem problem = testing::transformer_step({.layers = 6});
  const RematGraph graph(problem);
  const RematFront front(graph);
  const int64_t peak = front.points().front().peak_bytes;
  const int64_t least = front.points().back().peak_bytes;
  for (int i = 1; i < 20; ++i) {
    const int64_t budget = least + (peak - least) * i / 20;
    const size_t place = front.find(budget);
    Retention state(graph, budget);
    state.load(front.holds(graph, place));
    RematSearch(state, 1, {}).fill();
    CHECK(state.peak_bytes() <= budget);
    CHECK(state.cost().time <= front.points()[place].time);
  }
}

TEST_CASE("baselines: the knapsack's plan with all shares is the one without recompute") {
  const RematProblem problem = testing::chain_step(20, 2);
  const RematGraph graph(problem);
  const std::vector<RematBaseline> baselines = remat_baselines(graph);
  REQUIRE(baselines.size() == 3);
  CHECK(baselines[0].name == "none");
  CHECK(baselines[2].name == "knapsack");
  CHECK(baselines[2].points.back().time == baselines[0].points[0].time);
  CHECK(baselines[2].points.front().time > baselines[0].points[0].time);
  CHECK(baselines[1].points[0].time > baselines[0].points[0].time);
  CHECK(best_time_within(baselines[0], baselines[0].points[0].peak_bytes - 1) == std::nullopt);
  CHECK(remat_baselines(RematGraph(testing::random_graph(1, {}))).empty());
}

}  // namespace
}  // namespace trainscope::memplan
