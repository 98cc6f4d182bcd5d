// Tests of the checks on placement problems.
#include "memplan/problem.h"

#include <doctest/doctest.h>

#include <limits>

namespace trainscope::memplan {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

bool mentions(const Problem& problem, const std::string& text) {
  const std::string error = find_problem_error(problem).value_or("(none)");
  INFO("error: ", error);
  const bool found = error.find(text) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("problem: a clean one has no error") {
  CHECK_FALSE(find_problem_error(Problem{}));
  CHECK_FALSE(find_problem_error(Problem{
      .buffers =
          {{.lower = 0, .upper = 1, .size_bytes = 0},
           {.lower = 3, .upper = 9, .size_bytes = 7},
           {.lower = 3, .upper = 9, .size_bytes = 7, .alignment_bytes = 256, .fixed_offset = 512}},
      .capacity_bytes = 0}));
}

TEST_CASE("problem: nonsense is named with its buffer") {
  mentions({.buffers = {{.id = "w", .lower = 4, .upper = 4, .size_bytes = 1}}},
           "buffer 'w': upper 4 is not after lower 4");
  mentions({.buffers = {{.lower = 5, .upper = 4, .size_bytes = 1}}}, "buffer #0: upper 4");
  mentions({.buffers = {{.lower = -1, .upper = 4, .size_bytes = 1}}}, "lower is -1");
  mentions({.buffers = {{.lower = 0, .upper = 4, .size_bytes = -8}}}, "size is -8 bytes");
  mentions({.alignment_bytes = 0}, "alignment is 0 bytes");
  mentions({.capacity_bytes = -1}, "capacity is -1 bytes");
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = 1, .alignment_bytes = 96}}},
           "alignment 96 is not a multiple of the problem's alignment 64");
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = 1, .fixed_offset = 32}}},
           "fixed offset 32");
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = 1, .fixed_offset = -64}}},
           "fixed offset -64");
}

TEST_CASE("problem: sums beyond int64 are refused") {
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = kHuge / 2},
                        {.lower = 0, .upper = 1, .size_bytes = kHuge / 2},
                        {.lower = 0, .upper = 1, .size_bytes = kHuge / 2}}},
           "more than a signed 64-bit integer holds");
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = kHuge}}}, "64-bit");
  mentions({.buffers = {{.lower = 0, .upper = 1, .size_bytes = 64, .fixed_offset = kHuge - 63}}},
           "64-bit");
}

TEST_CASE("problem: fixed offsets must not clash, and count whole alignment units") {
  Problem problem{
      .buffers = {{.id = "a", .lower = 0, .upper = 5, .size_bytes = 65, .fixed_offset = 0},
                  {.id = "b", .lower = 4, .upper = 6, .size_bytes = 1, .fixed_offset = 64}}};
  mentions(problem, "fixed offsets: buffer 'b'");
  problem.buffers[1].fixed_offset = 128;
  CHECK_FALSE(find_problem_error(problem));
  problem.buffers[1] = {.lower = 5, .upper = 6, .size_bytes = 1, .fixed_offset = 0};
  CHECK_FALSE(find_problem_error(problem));
}

TEST_CASE("problem: occupied bytes are rounded up to the alignment") {
  const Problem problem{.alignment_bytes = 64};
  CHECK(occupied_bytes(problem, {.size_bytes = 0}) == 0);
  CHECK(occupied_bytes(problem, {.size_bytes = 1}) == 64);
  CHECK(occupied_bytes(problem, {.size_bytes = 64}) == 64);
  CHECK(occupied_bytes(problem, {.size_bytes = 65, .alignment_bytes = 256}) == 128);
  CHECK(offset_alignment_bytes(problem, {.alignment_bytes = 256}) == 256);
  CHECK(offset_alignment_bytes(problem, {}) == 64);
}

}  // namespace
}  // namespace trainscope::memplan
