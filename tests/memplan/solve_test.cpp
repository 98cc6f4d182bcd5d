// Tests of the race between placers: what it promises about heights, threads, time and capacity.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "memplan/bounds.h"
#include "memplan/solution.h"
#include "memplan/validate.h"
#include "tests/memplan/graphs.h"
#include "tests/memplan/problems.h"

namespace trainscope::memplan {
namespace {

// Every solution of this file goes through here.
Result solve_checked(const Problem& problem, const Options& options = {}) {
  Result result = solve(problem, options);
  REQUIRE(result.status != Status::kBadProblem);
  Problem unlimited = problem;
  if (result.status == Status::kOverCapacity) unlimited.capacity_bytes.reset();
  for (const Violation& violation : validate(unlimited, result.solution)) {
    FAIL_CHECK(violation.message);
  }
  CHECK(result.solution.lower_bound_bytes >= lower_bound_bytes(problem));
  return result;
}

TEST_CASE("solve: nothing, one empty buffer, one buffer") {
  CHECK(solve_checked({}).solution.height_bytes == 0);
  CHECK(solve_checked({.buffers = {{.lower = 0, .upper = 1}}}).solution.height_bytes == 0);
  const Result one = solve_checked({.buffers = {{.lower = 5, .upper = 9, .size_bytes = 1}}});
  CHECK(one.solution.height_bytes == 64);
  CHECK(one.solution.offsets == std::vector<std::int64_t>{0});
  CHECK(one.solution.method == "stack");
}

TEST_CASE("solve: buffers that live throughout lie at the bottom, strictest alignment first") {
  const Result result =
      solve_checked({.buffers = {{.lower = 2, .upper = 3, .size_bytes = 64},
                                 {.lower = 0, .upper = 9, .size_bytes = 100},
                                 {.lower = 0, .upper = 9, .size_bytes = 64, .alignment_bytes = 512},
                                 {.lower = 3, .upper = 4, .size_bytes = 64}}});
  CHECK(result.solution.offsets == std::vector<std::int64_t>{192, 64, 0, 192});
  CHECK(result.solution.proven);
}

TEST_CASE("solve: fixed buffers stay and are avoided") {
  const Result result =
      solve_checked({.buffers = {{.lower = 0, .upper = 9, .size_bytes = 64},
                                 {.lower = 2, .upper = 5, .size_bytes = 64, .fixed_offset = 64},
                                 {.lower = 4, .upper = 6, .size_bytes = 64},
                                 {.lower = 5, .upper = 6, .size_bytes = 64}}});
  CHECK(result.solution.offsets[0] == 0);
  CHECK(result.solution.offsets[1] == 64);
  CHECK(result.solution.height_bytes == 192);
  CHECK(result.solution.proven);
}

TEST_CASE("solve: a fixed buffer born during another's lifetime is avoided") {
  // No movable buffer is born while the fixed one lives.
  const Result result =
      solve_checked({.buffers = {{.lower = 0, .upper = 8, .size_bytes = 64},
                                 {.lower = 5, .upper = 7, .size_bytes = 64, .fixed_offset = 0},
                                 {.lower = 8, .upper = 9, .size_bytes = 64}}});
  CHECK(result.solution.offsets[0] == 64);
  CHECK(result.solution.offsets[2] == 0);
}

TEST_CASE("solve: sections of time without common buffers share the bytes") {
  const Result result = solve_checked({.buffers = {{.lower = 0, .upper = 4, .size_bytes = 640},
                                                   {.lower = 4, .upper = 6, .size_bytes = 640},
                                                   {.lower = 9, .upper = 12, .size_bytes = 64}}});
  CHECK(result.solution.offsets == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("solve: random problems are valid and at or above the bound") {
  int proven = 0;
  constexpr std::uint64_t kVisits = 100'000;  // enough for most, and quick
  constexpr std::uint64_t kSeeds = 300;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const int buffers = 1 + static_cast<int>(seed * 7 % 80);
    proven +=
        solve_checked(testing::random_problem(
                          seed, {.buffers = buffers, .alignment_bytes = seed % 2 == 0 ? 1 : 64}),
                      {.patience = Patience::kUnlimited, .most_visits = kVisits})
                .solution.proven
            ? 1
            : 0;
    solve_checked(testing::random_problem_with_fixed(seed, {.buffers = buffers}),
                  {.patience = Patience::kUnlimited, .most_visits = kVisits});
  }
  MESSAGE("at the bound: " << proven << " of " << kSeeds);
  CHECK(proven > 150);
}

TEST_CASE("solve: the outcome does not depend on threads") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Problem problem = testing::random_problem(seed, {.buffers = 150, .times = 60});
    if (seed % 3 == 0) problem = testing::training_problem(6, seed);
    if (seed % 3 == 1) problem.capacity_bytes = lower_bound_bytes(problem) * 11 / 10;
    if (seed % 10 == 2) problem = testing::branching_problem(1000, seed);
    const Solution one = solve_checked(problem).solution;
    for (const int threads : {2, 5, 64}) {
      const Solution many = solve_checked(problem, {.threads = threads}).solution;
      CHECK(many.offsets == one.offsets);
      CHECK(many.method == one.method);
    }
  }
}

TEST_CASE("solve: times that are far apart are placed like times that are not") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = seed % 2 == 0 ? testing::training_problem(3, seed)
                                          : testing::random_problem(seed, {.buffers = 60});
    Problem apart = problem;
    for (Buffer& buffer : apart.buffers) {
      buffer.lower *= 1'000'000;
      buffer.upper *= 1'000'000;
    }
    const Solution near = solve_checked(problem).solution;
    const Solution far = solve_checked(apart).solution;
    CHECK(far.offsets == near.offsets);
    CHECK(far.lower_bound_bytes == near.lower_bound_bytes);
  }
}

TEST_CASE("solve: with no time there is still the first placer's placement") {
  const Problem problem = testing::random_problem(3, {.buffers = 400, .times = 100});
  const Solution hasty = solve_checked(problem, {.seconds = 0}).solution;
  const Solution thorough = solve_checked(problem).solution;
  CHECK(hasty.method == placer_names().front());
  CHECK(thorough.height_bytes <= hasty.height_bytes);
}

TEST_CASE("solve: asked to stop there is still the first placer's placement") {
  const Problem problem = testing::random_problem(3, {.buffers = 400, .times = 100});
  std::stop_source stop;
  stop.request_stop();
  for (const int threads : {1, 4}) {
    const Solution stopped =
        solve_checked(problem, {.threads = threads, .stop = stop.get_token()}).solution;
    CHECK(stopped.method == placer_names().front());
  }
}

TEST_CASE("solve: with a capacity the first placement within it ends the search") {
  Problem problem = testing::random_problem(3, {.buffers = 400, .times = 100});
  const Solution first = solve_checked(problem, {.seconds = 0}).solution;
  problem.capacity_bytes = first.height_bytes;
  const Result result = solve_checked(problem);
  CHECK(result.status == Status::kPlaced);
  CHECK(result.solution.offsets == first.offsets);
}

TEST_CASE("solve: a generous capacity does not make the placement high") {
  Problem problem = testing::training_problem(4, 1);
  const Solution tight = solve_checked(problem).solution;
  problem.capacity_bytes = std::int64_t{1} << 60;
  CHECK(solve_checked(problem).solution.height_bytes < 2 * tight.height_bytes);
}

TEST_CASE("solve: over capacity, the best placement is returned and explained") {
  Problem problem = testing::random_problem(3, {.buffers = 40});
  problem.capacity_bytes = 10;
  const Result result = solve_checked(problem);
  CHECK(result.status == Status::kOverCapacity);
  CHECK(result.message.find("within the capacity of 10 bytes") != std::string::npos);
  problem.capacity_bytes.reset();
  CHECK(solve_checked(problem).solution.offsets == result.solution.offsets);
}

TEST_CASE("solve: bad problems and options are refused with a reason") {
  const Problem good{.buffers = {{.lower = 0, .upper = 1, .size_bytes = 1}}};
  CHECK(solve({.alignment_bytes = -1}).message == "alignment is -1 bytes, expected 1 or more");
  CHECK(solve(good, {.seconds = -1}).message == "the time limit must be 0 seconds or more");
  CHECK(solve(good, {.seconds = std::numeric_limits<double>::quiet_NaN()}).status ==
        Status::kBadProblem);
  CHECK(solve(good, {.threads = 0}).message == "the number of threads must be 1 or more");
  CHECK(solve(good, {.method = "magic"}).message == "no placement method 'magic'");
}

double gap_of(const Solution& solution) {
  return static_cast<double>(solution.height_bytes) /
             static_cast<double>(solution.lower_bound_bytes) -
         1;
}

TEST_CASE("solve: activations that die in reverse order meet the bound") {
  for (const int length : {1, 2, 3, 10, 100, 1000}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Solution solution = solve_checked(testing::chain_problem(length, seed)).solution;
      INFO("length ", length, ", seed ", seed, ", gap ", gap_of(solution));
      CHECK(gap_of(solution) <= (length <= 100 ? 0 : 0.001));
    }
  }
}

TEST_CASE("solve: networks with residual branches are within 1 % of the bound") {
  double worst_gap = 0;
  for (const int buffers : {1000, 10'000}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Problem problem = testing::branching_problem(buffers, seed);
      worst_gap = std::max(worst_gap, gap_of(solve_checked(problem, {.threads = 2}).solution));
    }
  }
  MESSAGE("worst gap " << worst_gap);
  CHECK(worst_gap <= 0.01);
}

TEST_CASE("solve: GPT at any degree of recomputation meets the bound") {
  for (const int layers : {12, 24, 96}) {
    for (int forgotten = 0; forgotten <= testing::kGptPlans; forgotten += 9) {
      INFO("layers ", layers, ", forgotten ", forgotten);
      CHECK(solve_checked(testing::gpt_problem(layers, forgotten)).solution.proven);
    }
  }
}

TEST_CASE("solve: boxes cut out of a rectangle go back into it") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Problem problem = testing::tight_problem(120, seed);
    for (const Problem& either : {problem, testing::reversed(problem)}) {
      INFO("seed ", seed);
      const Options options{.patience = Patience::kUnlimited, .most_visits = 4'000'000};
      CHECK(solve_checked(either, options).status == Status::kPlaced);
    }
  }
}

TEST_CASE("solve: patience never makes a placement higher") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = testing::random_problem(seed, {.buffers = 120, .times = 90});
    const Solution quick = solve_checked(problem).solution;
    const Solution patient = solve_checked(problem, {.patience = Patience::kUnlimited}).solution;
    CHECK(patient.height_bytes <= quick.height_bytes);
  }
}

TEST_CASE("solve: a glance is never lower, and starts with the method it is told") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = testing::training_problem(6, seed);
    const Solution whole = solve_checked(problem).solution;
    for (const std::string_view first : placer_names()) {
      CAPTURE(first);
      const Solution glance =
          solve_checked(problem, {.first = first, .patience = Patience::kGlance}).solution;
      CHECK(glance.height_bytes >= whole.height_bytes);
      const bool prompt = !first.starts_with("first_fit") && first != "ort_best_fit";
      const std::int64_t alone = solve_checked(problem, {.method = first}).solution.height_bytes;
      const std::int64_t bound = glance.lower_bound_bytes;
      if (prompt && alone <= bound + bound / 200) CHECK(glance.method == first);
      if (prompt) CHECK(glance.height_bytes <= std::max(alone, bound + bound / 200));
    }
  }
}

TEST_CASE("solve: transformer training steps meet the bound or nearly so") {
  int plans = 0;
  int proven = 0;
  double worst_gap = 0;
  for (const int layers : {1, 2, 4, 12, 24, 96}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Solution solution =
          solve_checked(testing::training_problem(layers, seed), {.most_visits = 100'000}).solution;
      INFO("layers ", layers, ", seed ", seed);
      CHECK(gap_of(solution) <= (layers < 12 ? 0.02 : 0.005));
      worst_gap = std::max(worst_gap, gap_of(solution));
      ++plans;
      proven += solution.proven ? 1 : 0;
    }
  }
  MESSAGE("at the bound: " << proven << " of " << plans << ", worst gap " << worst_gap);
  CHECK(proven >= plans * 3 / 4);
}

}  // namespace
}  // namespace trainscope::memplan
