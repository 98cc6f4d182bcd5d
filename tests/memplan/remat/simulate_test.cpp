// Tests of the replay of recompute plans.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "memplan/remat/csv.h"
#include "memplan/remat/plan.h"
#include "tests/memplan/remat/problems.h"
#include "tests/support/shared.h"

namespace trainscope::memplan {
namespace {

constexpr RematAction run(std::int32_t node) { return {RematActionKind::kCompute, node}; }
constexpr RematAction drop(std::int32_t node) { return {RematActionKind::kFree, node}; }

// a -> b -> c, c reads a too.
RematProblem small_problem() {
  return {
      .nodes = {{.id = 10, .name = "a", .bytes = 4, .time = 3},
                {.id = 11, .name = "b", .bytes = 2, .time = 5, .workspace_bytes = 9, .inputs = {0}},
                {.id = 12, .bytes = 1, .time = 7, .inputs = {0, 1}}}};
}

TEST_CASE("simulate: peak with workspace, time with reruns") {
  const RematProblem problem = small_problem();
  const RematReplay saved = simulate(problem, save_all_plan(problem));
  CHECK(saved.message.empty());
  CHECK(saved.peak_bytes == 15);
  CHECK(saved.peak_action == 1);
  CHECK(saved.time == 15);
  CHECK(saved.reruns == 0);
  const RematReplay second =
      simulate(problem, {{run(0), run(1), drop(0), run(0), run(2), drop(0), drop(1)}});
  CHECK(second.message.empty());
  CHECK(second.time == 18);
  CHECK(second.reruns == 1);
  CHECK(base_time(problem) == 15);
}

TEST_CASE("simulate: the first impossible action is named") {
  RematProblem problem = small_problem();
  const auto message = [&](std::vector<RematAction> actions) {
    return simulate(problem, {std::move(actions)}).message;
  };
  CHECK(message({run(1)}) == "action 1: node 11 ('b') runs without its input node 10 ('a')");
  CHECK(message({run(0), run(0)}) == "action 2: node 10 ('a') runs while its value is in memory");
  CHECK(message({run(0), drop(0), drop(0)}) ==
        "action 3: node 10 ('a') is freed but not in memory");
  CHECK(message({run(0), drop(1)}) == "action 2: node 11 ('b') is freed but not in memory");
  CHECK(message({run(0), run(1)}) == "node 12 never runs");
  CHECK(message({run(3)}) == "action 1: there is no node #3");
  CHECK(message({drop(-1)}) == "action 1: there is no node #-1");
  problem.nodes[0].may_rerun = false;
  CHECK(message({run(0), drop(0), run(0)}) == "action 3: node 10 ('a') must run only once");
}

TEST_CASE("simulate: problems that cannot be added up are refused") {
  RematProblem problem = small_problem();
  CHECK_FALSE(find_remat_error(problem));
  problem.nodes[2].inputs = {2};
  CHECK(find_remat_error(problem) == "node 12: input #2 is not an earlier node");
  problem.nodes[2].inputs = {0, 0};
  CHECK(find_remat_error(problem) == "node 12: input 10 is named twice");
  problem = small_problem();
  problem.nodes[1].bytes = -1;
  CHECK(find_remat_error(problem) == "node 11 ('b'): bytes is -1, expected 0 or more");
  problem = small_problem();
  problem.nodes[1].id = 10;
  CHECK(find_remat_error(problem) == "node 10 ('b'): its id is another node's too");
}

TEST_CASE("simulate: networks of the paper Checkmate have their published peaks" *
          doctest::skip(!test::has_shared("data/recompute/fcn8_b32.csv"))) {
  struct Network {
    const char* name;
    std::size_t nodes;
    std::int64_t peak_bytes;
    std::int64_t time;
  };
  for (const Network& network : {Network{"fcn8_b32", 73, 13484795520, 10275337746048},
                                 {"vgg19_b256", 51, 17058234368, 9493135},
                                 {"unet_b32", 71, 20959461376, 31005},
                                 {"segnet_b32", 77, 19943884288, 4933130},
                                 {"resnet50_b256", 353, 38059356160, 405670},
                                 {"layered_n250", 250, 135910, 125569}}) {
    std::ifstream file(test::shared_path("data/recompute/" + std::string(network.name) + ".csv"));
    const ParsedRemat parsed =
        parse_remat_csv(std::string(std::istreambuf_iterator<char>(file), {}));
    REQUIRE(parsed.message == "");
    CHECK(parsed.problem.nodes.size() == network.nodes);
    const RematReplay replay = simulate(parsed.problem, save_all_plan(parsed.problem));
    CHECK(replay.message.empty());
    CHECK(replay.peak_bytes == network.peak_bytes);
    CHECK(replay.time == network.time);
  }
}

}  // namespace
}  // namespace trainscope::memplan
