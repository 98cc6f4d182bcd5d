// Tests of what holds a box up.
#include "memplan/exact/culprits.h"

#include <doctest/doctest.h>

namespace trainscope::memplan {
namespace {

constexpr std::size_t kBoxes = 100;  // two words a set

TEST_CASE("culprits: a box is held up by the chain below it and by nothing else") {
  Culprits culprits(kBoxes);
  BoxSets blamed(kBoxes);
  blamed.clear(0);
  culprits.place(70, 0);
  culprits.place(3, 1);  // beside it
  culprits.set_raiser(5, 70);
  culprits.place(5, 2);
  culprits.set_raiser(99, 5);
  culprits.blame(blamed, 0, 99);
  CHECK(blamed.contains(0, 5));
  CHECK(blamed.contains(0, 70));
  CHECK_FALSE(blamed.contains(0, 3));
  CHECK_FALSE(blamed.contains(0, 99));
}

TEST_CASE("culprits: a box on the ground is nobody's fault") {
  Culprits culprits(kBoxes);
  BoxSets blamed(kBoxes);
  blamed.clear(0);
  culprits.blame(blamed, 0, 42);
  for (std::int32_t box = 0; box < static_cast<std::int32_t>(kBoxes); ++box) {
    CHECK_FALSE(blamed.contains(0, box));
  }
}

TEST_CASE("culprits: sets are rows that are emptied when they are begun again") {
  BoxSets sets(kBoxes);
  sets.clear(0);
  sets.clear(1);
  sets.add(0, 64);
  sets.add_all(1, sets, 0);
  sets.remove(0, 64);
  CHECK_FALSE(sets.contains(0, 64));
  CHECK(sets.contains(1, 64));
  sets.clear(1);
  CHECK_FALSE(sets.contains(1, 64));
}

}  // namespace
}  // namespace trainscope::memplan
