// Tests of the free-space search against a look at every pair.
#include "memplan/place/occupancy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace trainscope::memplan {
namespace {

TEST_CASE("range set: finds gaps, merges neighbours and fills useless gaps") {
  RangeSet set;
  CHECK(set.empty());
  CHECK(set.taken_from_zero() == 0);
  set.add(0, 10, 1);
  set.add(20, 30, 1);
  set.add(34, 40, 1);
  const auto fit = [&](std::int64_t from, std::int64_t size, std::int64_t alignment) {
    std::int64_t offset = from;
    set.raise_to_fit(offset, size, alignment);
    return offset;
  };
  CHECK(fit(0, 10, 1) == 10);
  CHECK(fit(0, 11, 1) == 40);
  CHECK(fit(0, 4, 8) == 16);
  CHECK(fit(0, 5, 8) == 40);
  CHECK(fit(32, 2, 1) == 32);
  CHECK(fit(50, 1000, 1) == 50);
  CHECK(set.taken_from_zero() == 10);
  set.add(10, 12, 8);  // touches the first range, and leaves 8 free bytes that count
  CHECK(set.taken_from_zero() == 12);
  CHECK(fit(0, 8, 1) == 12);
  set.add(50, 60, 11);  // nobody needs gaps below 11 any more
  CHECK(set.taken_from_zero() == 12);
  CHECK(fit(40, 1, 1) == 60);
}

TEST_CASE("occupancy: agrees with a look at every pair") {
  std::mt19937 engine(7);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    const Task task{.slot_count = between(1, 40)};
    Occupancy occupancy(task);
    std::vector<Obstacle> taken;
    for (int i = 0; i < 60; ++i) {
      const int first = between(0, task.slot_count - 1);
      const Box box{.first_slot = first,
                    .end_slot = between(first + 1, task.slot_count),
                    .size_bytes = between(1, 20),
                    .alignment_bytes = between(1, 3)};
      const std::int64_t found = occupancy.lowest_fit(box, 5);
      std::int64_t expected = align_up(5, box.alignment_bytes);
      const auto clashes = [&](const Obstacle& other) {
        return other.first_slot < box.end_slot && box.first_slot < other.end_slot &&
               other.begin_bytes < expected + box.size_bytes && expected < other.end_bytes;
      };
      while (expected % box.alignment_bytes != 0 ||
             std::any_of(taken.begin(), taken.end(), clashes)) {
        ++expected;
      }
      REQUIRE(found == expected);
      taken.push_back({box.first_slot, box.end_slot, found, found + box.size_bytes});
      occupancy.take(taken.back(), 1);
    }
    CHECK(occupancy.visits() > 0);
  }
}

}  // namespace
}  // namespace trainscope::memplan
