// Cuts into stages, against every cut there is.
#include "engine/world/stage_balance.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace trainscope::test {
namespace {

struct Measure {
  double most = 0.0;
  double squares = 0.0;
};

Measure measure(const PieceCosts& costs, const std::vector<int>& stage_of) {
  std::vector<double> stages(static_cast<std::size_t>(stage_of.back()) + 1, 0.0);
  for (std::size_t i = 0; i < stage_of.size(); ++i) {
    stages[static_cast<std::size_t>(stage_of[i])] += costs.seconds[i];
    if (i + 1 == stage_of.size() || stage_of[i + 1] == stage_of[i]) continue;
    stages[static_cast<std::size_t>(stage_of[i])] += costs.message_seconds[i];
    stages[static_cast<std::size_t>(stage_of[i + 1])] += costs.message_seconds[i];
  }
  Measure result;
  for (double stage : stages) {
    result.most = std::max(result.most, stage);
    result.squares += stage * stage;
  }
  return result;
}

bool each_has_parameters(const PieceCosts& costs, const std::vector<int>& stage_of) {
  std::set<int> with;
  for (std::size_t i = 0; i < stage_of.size(); ++i) {
    if (costs.with_parameters[i]) with.insert(stage_of[i]);
  }
  return static_cast<int>(with.size()) == stage_of.back() + 1;
}

// Each bit of `cuts` is a cut after a piece.
std::vector<int> stages_by_bits(std::size_t pieces, unsigned cuts) {
  std::vector<int> stage_of = {0};
  for (std::size_t i = 1; i < pieces; ++i) {
    stage_of.push_back(stage_of.back() + static_cast<int>((cuts >> (i - 1)) & 1U));
  }
  return stage_of;
}

Measure best_by_trial(const PieceCosts& costs, std::int64_t stages) {
  Measure best{.most = 1e300, .squares = 1e300};
  const std::size_t pieces = costs.seconds.size();
  for (unsigned cuts = 0; cuts < (1U << (pieces - 1)); ++cuts) {
    const std::vector<int> stage_of = stages_by_bits(pieces, cuts);
    if (stage_of.back() + 1 != stages || !each_has_parameters(costs, stage_of)) continue;
    const Measure trial = measure(costs, stage_of);
    const bool better =
        trial.most < best.most || (trial.most == best.most && trial.squares < best.squares);
    if (better) best = trial;
  }
  return best;
}

PieceCosts equal_pieces(std::size_t count) {
  return {.seconds = std::vector<double>(count, 1.0),
          .message_seconds = std::vector<double>(count - 1, 0.01),
          .with_parameters = std::vector<bool>(count, true)};
}

}  // namespace

TEST_CASE("balanced stages: no cut is better, of all there are") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> seconds(0, 9);
  std::uniform_int_distribution<int> message(0, 4);
  for (int trial = 0; trial < 200; ++trial) {
    PieceCosts costs;
    const std::size_t pieces = 2 + static_cast<std::size_t>(trial) % 8;
    for (std::size_t i = 0; i < pieces; ++i) {
      costs.seconds.push_back(seconds(random));
      if (i > 0) costs.message_seconds.push_back(message(random));
      costs.with_parameters.push_back(seconds(random) > 3);
    }
    costs.with_parameters[0] = true;
    const std::int64_t most = std::ranges::count(costs.with_parameters, true);
    for (std::int64_t stages = 1; stages <= most; ++stages) {
      CAPTURE(trial);
      CAPTURE(stages);
      const std::vector<int> found = balanced_stages(costs, stages);
      REQUIRE(found.back() + 1 == stages);
      CHECK(each_has_parameters(costs, found));
      const Measure best = best_by_trial(costs, stages);
      CHECK(measure(costs, found).most == best.most);
      CHECK(measure(costs, found).squares == best.squares);
    }
  }
}

TEST_CASE("balanced stages: of equal cuts the first stages are the short ones") {
  // Ten pieces on four stages: 3 and 2, in any order; messages weigh on those in the middle.
  CHECK(balanced_stages(equal_pieces(4), 2) == std::vector<int>{0, 0, 1, 1});
  CHECK(balanced_stages(equal_pieces(3), 2) == std::vector<int>{0, 1, 1});
}

TEST_CASE("balanced stages: more of them are never slower where pieces are equal") {
  const PieceCosts costs = equal_pieces(24);
  double before = 1e300;
  for (std::int64_t stages = 2; stages <= 24; ++stages) {
    const double most = measure(costs, balanced_stages(costs, stages)).most;
    CHECK(most <= before * (1.0 + 1e-9));
    before = most;
  }
}

TEST_CASE("balanced stages: a message that is dear is not sent") {
  PieceCosts costs = equal_pieces(3);
  costs.seconds = {4.0, 4.0, 1.0};
  costs.message_seconds = {0.5, 9.0};  // the scores of a large vocabulary
  CHECK(balanced_stages(costs, 2) == std::vector<int>{0, 1, 1});
}

}  // namespace trainscope::test
