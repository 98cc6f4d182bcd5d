// Tests of the index of boxes by time, against looking at all of them.
#include "memplan/place/contained.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/memplan/dice.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

TEST_CASE("contained: takes the first box within the range until there is none") {
  for (const int count : {1, 2, 8, 9, 31, 64, 300, 2000}) {
    testing::Dice dice(static_cast<std::uint64_t>(count));
    constexpr int kSlots = 50;
    Task task{.slot_count = kSlots};
    for (int i = 0; i < count; ++i) {
      const auto first = static_cast<int32_t>(dice.between(0, kSlots - 1));
      const auto end = static_cast<int32_t>(dice.between(first + 1, kSlots));
      task.boxes.push_back({.first_slot = first, .end_slot = end, .size_bytes = 1});
    }
    std::vector<int32_t> rank(task.boxes.size());
    std::iota(rank.begin(), rank.end(), 0);
    for (size_t i = rank.size(); i > 1; --i) {
      std::swap(rank[i - 1], rank[static_cast<size_t>(dice.between(0, static_cast<int>(i) - 1))]);
    }
    Contained waiting(task, rank);
    std::vector<char> taken(task.boxes.size(), 0);
    for (int question = 0; question < 2000; ++question) {
      const auto first = static_cast<int32_t>(dice.between(0, kSlots - 1));
      const auto end = static_cast<int32_t>(dice.between(first + 1, kSlots));
      int32_t expected = -1;
      for (size_t i = 0; i < task.boxes.size(); ++i) {
        const bool within = task.boxes[i].first_slot >= first && task.boxes[i].end_slot <= end;
        if (!within || taken[i] != 0) continue;
        const bool better = expected < 0 || rank[i] < rank[static_cast<size_t>(expected)];
        if (better) expected = static_cast<int32_t>(i);
      }
      REQUIRE(waiting.take_first(first, end) == expected);
      if (expected >= 0) taken[static_cast<size_t>(expected)] = 1;
    }
  }
}

}  // namespace
}  // namespace trainscope::memplan
