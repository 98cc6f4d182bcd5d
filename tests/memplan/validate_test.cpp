// Tests of the checker: valid placements pass, and every kind of planted mistake is found.
#include "memplan/validate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "tests/memplan/problems.h"

namespace trainscope::memplan {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// Two neighbours in space, one that takes over the first one's bytes.
const Problem kProblem{.buffers = {{.id = "a", .lower = 0, .upper = 4, .size_bytes = 100},
                                   {.id = "b", .lower = 2, .upper = 8, .size_bytes = 64},
                                   {.id = "c", .lower = 4, .upper = 8, .size_bytes = 128}}};
const Solution kSolution{
    .offsets = {0, 128, 0}, .height_bytes = 192, .lower_bound_bytes = 192, .proven = true};

std::vector<ViolationKind> kinds(const Problem& problem, const Solution& solution) {
  std::vector<ViolationKind> found;
  for (const Violation& violation : validate(problem, solution)) {
    CHECK_FALSE(violation.message.empty());
    found.push_back(violation.kind);
  }
  return found;
}

using Kinds = std::vector<ViolationKind>;

TEST_CASE("validate: accepts a valid placement") {
  CHECK(kinds(kProblem, kSolution) == Kinds{});
  CHECK(kinds({}, {}) == Kinds{});
}

TEST_CASE("validate: wrong count") {
  Solution solution = kSolution;
  solution.offsets.pop_back();
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kWrongCount});
}

TEST_CASE("validate: negative offset") {
  Solution solution = kSolution;
  solution.offsets[0] = -64;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kNegative});
  solution.offsets[0] = std::numeric_limits<std::int64_t>::min();
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kNegative});
}

TEST_CASE("validate: misaligned offset") {
  Solution solution = kSolution;
  solution.offsets[0] = 28;  // 28 + 100 still ends where b begins
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kMisaligned});
  Problem strict = kProblem;
  strict.buffers[1].alignment_bytes = 256;
  CHECK(kinds(strict, kSolution) == Kinds{ViolationKind::kMisaligned});
}

TEST_CASE("validate: a fixed buffer elsewhere") {
  Problem problem = kProblem;
  problem.buffers[0].fixed_offset = 0;
  CHECK(kinds(problem, kSolution) == Kinds{});
  problem.buffers[0].fixed_offset = 64;
  CHECK(kinds(problem, kSolution) == Kinds{ViolationKind::kMoved});
}

TEST_CASE("validate: a buffer above the height, however far") {
  Solution solution = kSolution;
  solution.offsets[1] = 192;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kAboveHeight});
  solution.offsets[1] = kHuge - 63;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kAboveHeight});
}

TEST_CASE("validate: overlap in time and space, and only in both") {
  Solution solution = kSolution;
  solution.offsets[1] = 64;  // into a by 36 bytes, into c by 64
  const std::vector<Violation> found = validate(kProblem, solution);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == ViolationKind::kOverlap);
  CHECK(found[0].buffer == 1);
  CHECK(found[0].other == 0);
  CHECK(found[0].message ==
        "buffer 'b' (64 bytes at 64) and buffer 'a' (100 bytes at 0) share bytes at time 2");
  Problem apart = kProblem;
  apart.buffers[1].lower = 8;
  apart.buffers[1].upper = 9;
  CHECK(kinds(apart, solution) == Kinds{});
}

TEST_CASE("validate: overlap by the last byte, by equality and by containment") {
  const auto overlaps = [](std::int64_t offset, std::int64_t size) {
    const Problem problem{.buffers = {{.lower = 0, .upper = 9, .size_bytes = 10},
                                      {.lower = 8, .upper = 10, .size_bytes = size}},
                          .alignment_bytes = 1};
    const Solution solution{.offsets = {10, offset}, .height_bytes = 100, .proven = false};
    return !validate(problem, solution).empty();
  };
  CHECK_FALSE(overlaps(0, 10));
  CHECK(overlaps(0, 11));
  CHECK_FALSE(overlaps(20, 1));
  CHECK(overlaps(19, 1));
  CHECK(overlaps(10, 10));
  CHECK(overlaps(12, 3));
  CHECK(overlaps(5, 50));
  CHECK_FALSE(overlaps(12, 0));
}

TEST_CASE("validate: height above the capacity") {
  Problem problem = kProblem;
  problem.capacity_bytes = 191;
  CHECK(kinds(problem, kSolution) == Kinds{ViolationKind::kAboveCapacity});
}

TEST_CASE("validate: a bound above the height, and false claims of proof") {
  Solution solution = kSolution;
  solution.lower_bound_bytes = 193;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kWrongBound});
  solution = kSolution;
  solution.proven = false;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kWrongBound});
  solution = kSolution;
  solution.lower_bound_bytes = 128;
  CHECK(kinds(kProblem, solution) == Kinds{ViolationKind::kWrongBound});
}

bool has_overlap_by_pairs(const Problem& problem, const Solution& solution) {
  const auto shares = [&](std::size_t i, std::size_t j) {
    const Buffer& a = problem.buffers[i];
    const Buffer& b = problem.buffers[j];
    return a.lower < b.upper && b.lower < a.upper &&
           solution.offsets[i] < solution.offsets[j] + b.size_bytes &&
           solution.offsets[j] < solution.offsets[i] + a.size_bytes && a.size_bytes > 0 &&
           b.size_bytes > 0;
  };
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (shares(i, j)) return true;
    }
  }
  return false;
}

TEST_CASE("validate: agrees with all pairs on placements with one buffer moved") {
  int overlapping = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Problem problem = testing::random_problem(seed, {.buffers = 25, .largest_bytes = 50});
    Solution solution = solve(problem).solution;
    const std::size_t moved = seed % problem.buffers.size();
    solution.offsets[moved] = static_cast<std::int64_t>(seed * 7 % 90);
    const std::vector<Violation> found = validate(problem, solution);
    const bool reported = std::any_of(found.begin(), found.end(), [](const Violation& violation) {
      return violation.kind == ViolationKind::kOverlap;
    });
    const bool expected = has_overlap_by_pairs(problem, solution);
    CHECK(reported == expected);
    overlapping += expected ? 1 : 0;
  }
  CHECK(overlapping > 50);  // the test sees both cases
  CHECK(overlapping < 390);
}

}  // namespace
}  // namespace trainscope::memplan
