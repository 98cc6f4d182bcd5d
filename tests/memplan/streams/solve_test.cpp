// Tests of placement for several streams: against brute force, intervals, and the checker.
#include "memplan/streams/solve.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "memplan/streams/bounds.h"
#include "memplan/streams/validate.h"
#include "tests/memplan/streams/problems.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using testing::Relation;

// Every solution of this file goes through here.
Solution solve_checked(const StreamProblem& problem, const Options& options = {}) {
  Result result = solve_streams(problem, options);
  REQUIRE(result.status != Status::kBadProblem);
  StreamProblem unlimited = problem;
  if (result.status == Status::kOverCapacity) unlimited.capacity_bytes.reset();
  for (const Violation& violation : validate_streams(unlimited, result.solution)) {
    FAIL_CHECK(violation.message);
  }
  return result.solution;
}

double gap_of(const Solution& solution) {
  return static_cast<double>(solution.height_bytes) /
             static_cast<double>(solution.lower_bound_bytes) -
         1;
}

class BruteForce {
 public:
  explicit BruteForce(const StreamProblem& problem) : problem_(problem) {
    const Relation reach = testing::reachability(problem);
    const size_t count = problem.buffers.size();
    meet_.assign(count, std::vector<char>(count, 0));
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        meet_[a][b] = !testing::over_before(problem, reach, a, b) &&
                      !testing::over_before(problem, reach, b, a);
      }
    }
  }

  bool meet(size_t a, size_t b) const { return meet_[a][b] != 0; }

  // In some order, each buffer on top of all earlier ones that it meets.
  int64_t optimum_bytes() const {
    std::vector<size_t> order(meet_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    int64_t best = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> ends(order.size());
    do {
      int64_t height = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        int64_t offset = 0;
        for (size_t j = 0; j < i; ++j) {
          if (meet(order[i], order[j])) offset = std::max(offset, ends[order[j]]);
        }
        ends[order[i]] = offset + problem_.buffers[order[i]].size_bytes;
        if (problem_.buffers[order[i]].size_bytes == 0) ends[order[i]] = 0;
        height = std::max(height, ends[order[i]]);
      }
      best = std::min(best, height);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
  }

  // The heaviest of all sets of buffers that meet each other.
  int64_t heaviest_clique_bytes() const {
    int64_t heaviest = 0;
    for (unsigned set = 0; set < 1U << meet_.size(); ++set) {
      int64_t bytes = 0;
      bool clique = true;
      for (size_t a = 0; a < meet_.size(); ++a) {
        if ((set >> a & 1U) == 0) continue;
        bytes += problem_.buffers[a].size_bytes;
        for (size_t b = 0; b < a; ++b) clique = clique && ((set >> b & 1U) == 0 || meet(a, b));
      }
      if (clique) heaviest = std::max(heaviest, bytes);
    }
    return heaviest;
  }

 private:
  const StreamProblem& problem_;
  Relation meet_;
};

TEST_CASE("streams: nothing, and one buffer") {
  CHECK(solve_checked({}).height_bytes == 0);
  const Solution one = solve_checked(
      {.operations = {{}}, .buffers = {{.size_bytes = 65, .producer = 0}}, .alignment_bytes = 64});
  CHECK(one.height_bytes == 128);
  CHECK(one.proven);
}

TEST_CASE("streams: bytes that a copy still reads are not reused") {
  StreamProblem problem{.operations = {{}, {}, {.stream = 1, .after = {0}}},
                        .buffers = {{.size_bytes = 64, .producer = 0, .readers = {2}},
                                    {.size_bytes = 64, .producer = 1}}};
  CHECK(solve_checked(problem).height_bytes == 128);
  problem.operations[1].after = {2};  // now it waits for the copy
  CHECK(solve_checked(problem).height_bytes == 64);
}

TEST_CASE("streams: up to 7 buffers against brute force") {
  int optimal = 0;
  int above_cut = 0;
  constexpr int kProblems = 400;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    const StreamProblem problem =
        testing::random_stream_problem(seed, {.streams = 1 + static_cast<int>(seed % 4),
                                              .operations = 4 + static_cast<int>(seed % 9),
                                              .buffers = 3 + static_cast<int>(seed % 5),
                                              .waits_percent = 20 + static_cast<int>(seed % 50)});
    const BruteForce brute(problem);
    const int64_t optimum = brute.optimum_bytes();
    const int64_t clique = brute.heaviest_clique_bytes();
    const Clocks clocks = find_clocks(problem);
    const StreamLifetimes lifetimes = find_lifetimes(problem, clocks);
    const int64_t cut = heaviest_cut_bytes(problem, clocks, lifetimes);
    INFO("seed ", seed);
    CHECK(heaviest_antichain_bytes(problem, clocks, lifetimes) == clique);
    CHECK(cut <= clique);
    above_cut += clique > cut ? 1 : 0;
    const Solution solution = solve_checked(problem);
    CHECK(solution.height_bytes >= optimum);
    CHECK(solution.lower_bound_bytes <= optimum);
    if (seed % 4 == 0) CHECK(cut == clique);  // one stream: the live bytes
    optimal += solution.height_bytes == optimum ? 1 : 0;
  }
  MESSAGE("optimal on " << optimal << " of " << kProblems
                        << "; the heaviest set is above the cut on " << above_cut);
  CHECK(optimal >= kProblems * 97 / 100);
  CHECK(above_cut > 0);
}

// One stream's problem as intervals of places.
Problem intervals_of(const StreamProblem& streams) {
  Problem problem{.alignment_bytes = streams.alignment_bytes};
  const auto end = static_cast<int64_t>(streams.operations.size()) + 1;
  for (const StreamBuffer& buffer : streams.buffers) {
    const int64_t first = std::max(0, buffer.producer);
    int64_t last = first;
    for (const int reader : buffer.readers) last = std::max<int64_t>(last, reader);
    problem.buffers.push_back(
        {.lower = first, .upper = buffer.kept ? end : last + 1, .size_bytes = buffer.size_bytes});
  }
  return problem;
}

TEST_CASE("streams: one stream is the problem of intervals") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const StreamProblem problem = testing::random_stream_problem(
        seed, {.streams = 1, .operations = 40, .buffers = 60, .waits_percent = 0});
    const Solution streams = solve_checked(problem);
    const Solution intervals = solve(intervals_of(problem)).solution;
    CHECK(streams.offsets == intervals.offsets);
    CHECK(streams.lower_bound_bytes == intervals.lower_bound_bytes);
    CHECK(streams.method == intervals.method);
  }
}

TEST_CASE("streams: streams that take turns are the problem of intervals too") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    StreamProblem problem = testing::random_stream_problem(
        seed, {.streams = 1, .operations = 40, .buffers = 60, .waits_percent = 0});
    const Solution intervals = solve(intervals_of(problem)).solution;
    for (size_t i = 1; i < problem.operations.size(); ++i) {
      problem.operations[i].stream = static_cast<int>((i * 7 + seed) % 3);
      problem.operations[i].after = {static_cast<int>(i) - 1};
    }
    CHECK(solve_checked(problem).offsets == intervals.offsets);
  }
}

TEST_CASE("streams: random problems of some hundred buffers") {
  double worst_gap = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const StreamProblem problem =
        testing::random_stream_problem(seed, {.streams = 2 + static_cast<int>(seed % 3),
                                              .operations = 150,
                                              .buffers = 100 + static_cast<int>(seed) * 10,
                                              .waits_percent = 30 + static_cast<int>(seed % 40),
                                              .largest_bytes = 1000});
    const Solution one = solve_checked(problem);
    const Solution many = solve_checked(problem, {.threads = 3});
    CHECK(many.offsets == one.offsets);
    CHECK(many.lower_bound_bytes == one.lower_bound_bytes);
    worst_gap = std::max(worst_gap, gap_of(one));
  }
  MESSAGE("worst gap " << worst_gap);
  CHECK(worst_gap < 0.08);
}

TEST_CASE("streams: training steps with copies to the host and back") {
  int proven = 0;
  double worst_gap = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const StreamProblem problem = testing::offload_step(2 + static_cast<int>(seed) * 4, seed);
    const Solution solution = solve_checked(problem);
    INFO("seed ", seed);
    proven += solution.proven ? 1 : 0;
    worst_gap = std::max(worst_gap, gap_of(solution));
  }
  MESSAGE("at the bound: " << proven << " of 20, worst gap " << worst_gap);
  CHECK(proven >= 10);
  CHECK(worst_gap < 0.05);
}

TEST_CASE("streams: capacity, time and bad options") {
  StreamProblem problem = testing::random_stream_problem(5, {.streams = 3, .buffers = 40});
  const Solution best = solve_checked(problem);
  problem.capacity_bytes = best.height_bytes;
  CHECK(solve_streams(problem).status == Status::kPlaced);
  problem.capacity_bytes = best.lower_bound_bytes - 1;
  const Result over = solve_streams(problem);
  CHECK(over.status == Status::kOverCapacity);
  CHECK(over.message.find("(so none exists)") != std::string::npos);
  problem.capacity_bytes.reset();
  CHECK(solve_checked(problem, {.seconds = 0}).height_bytes >= best.height_bytes);
  CHECK(solve_streams(problem, {.seconds = -1}).message ==
        "the time limit must be 0 seconds or more");
  CHECK(solve_streams(problem, {.threads = 0}).status == Status::kBadProblem);
  CHECK(solve_streams({.operations = {{.after = {0}}}}).message ==
        "operation #0: it waits for itself");
}

TEST_CASE("validate streams: blames overlaps exactly where two buffers meet") {
  int refused = 0;
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const StreamProblem problem = testing::random_stream_problem(
        seed, {.streams = 1 + static_cast<int>(seed % 4), .buffers = 5});
    const BruteForce brute(problem);
    Solution solution{.height_bytes = 40, .lower_bound_bytes = 0, .proven = false};
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      solution.offsets.push_back(static_cast<int64_t>((seed * 31 + i * 17) % 23));
    }
    bool clash = false;
    for (size_t a = 0; a < problem.buffers.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool bytes =
            solution.offsets[a] < solution.offsets[b] + problem.buffers[b].size_bytes &&
            solution.offsets[b] < solution.offsets[a] + problem.buffers[a].size_bytes;
        const bool empty = problem.buffers[a].size_bytes == 0 || problem.buffers[b].size_bytes == 0;
        clash = clash || (bytes && !empty && brute.meet(a, b));
      }
    }
    INFO("seed ", seed);
    CHECK(validate_streams(problem, solution).empty() == !clash);
    (clash ? refused : accepted) += 1;
  }
  CHECK(refused > 50);
  CHECK(accepted > 50);
}

TEST_CASE("validate streams: everything else that can be wrong") {
  const StreamProblem problem{.operations = {{}},
                              .buffers = {{.id = "x", .size_bytes = 100, .producer = 0}},
                              .alignment_bytes = 64,
                              .capacity_bytes = 120};
  const auto kinds = [&](const Solution& solution) {
    std::vector<ViolationKind> found;
    for (const Violation& violation : validate_streams(problem, solution)) {
      found.push_back(violation.kind);
    }
    return found;
  };
  using Kinds = std::vector<ViolationKind>;
  const Solution good{.offsets = {0}, .height_bytes = 100, .lower_bound_bytes = 100};
  CHECK(kinds(good).empty());
  Solution bad = good;
  bad.offsets = {};
  CHECK(kinds(bad) == Kinds{ViolationKind::kWrongCount});
  bad = good;
  bad.offsets = {-64};
  CHECK(kinds(bad) == Kinds{ViolationKind::kNegative});
  bad.offsets = {1};
  CHECK(kinds(bad) == Kinds{ViolationKind::kAboveHeight, ViolationKind::kMisaligned});
  bad.offsets = {std::numeric_limits<int64_t>::max() / 64 * 64};
  CHECK(kinds(bad) == Kinds{ViolationKind::kAboveHeight});
  bad = good;
  bad.height_bytes = 121;
  CHECK(kinds(bad) == Kinds{ViolationKind::kAboveCapacity, ViolationKind::kWrongBound});
}

}  // namespace
}  // namespace trainscope::memplan
