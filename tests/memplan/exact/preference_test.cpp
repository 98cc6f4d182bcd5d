// Tests of the orders of preference, given and learned.
#include "memplan/exact/preference.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <utility>

namespace trainscope::memplan {
namespace {

// Three boxes one after the other, each in a slot of its own, and one that lives throughout.
std::shared_ptr<const SearchModel> four_boxes() {
  const Task task{.boxes = {{.first_slot = 0, .end_slot = 1, .size_bytes = 5},
                            {.first_slot = 1, .end_slot = 2, .size_bytes = 4},
                            {.first_slot = 2, .end_slot = 3, .size_bytes = 3},
                            {.first_slot = 0, .end_slot = 3, .size_bytes = 1}},
                  .slot_count = 3};
  std::optional<SearchModel> model = make_search_model(task, 100);
  REQUIRE(model.has_value());
  return std::make_shared<const SearchModel>(*std::move(model));
}

TEST_CASE("preference: width, area and most bytes alive make different orders") {
  const auto model = four_boxes();  // by first slot: 5, throughout, 4, 3
  const std::vector<double> durations = {1, 3, 1, 1};
  const std::vector<Preference> preferences = make_preferences(*model, durations);
  REQUIRE(preferences.size() == 4);
  CHECK(preferences[0].first == Ranks{1, 0, 2, 3});  // the widest first
  CHECK(preferences[1].first == Ranks{0, 1, 2, 3});  // where most is alive the largest first
  CHECK(preferences[2].first == Ranks{1, 0, 2, 3});  // where most is alive the widest first
  CHECK(preferences[3].first == Ranks{0, 2, 1, 3});  // the largest area, counted in slots
}

TEST_CASE("preference: what lives where boxes did not fit goes first") {
  const auto model = four_boxes();
  const Preference preference{.first = {0, 1, 2, 3}, .learned_by = {.conflict = 1, .size = 0}};
  ConflictMemory memory(model, preference);
  memory.note(2);
  memory.note(2);
  memory.note(1);
  // The box throughout has all conflicts, the last one two of three, the first none.
  CHECK(memory.learn() == Ranks{3, 0, 2, 1});
}

TEST_CASE("preference: conflicts of earlier attempts count less, ties as at first") {
  const auto model = four_boxes();
  const Preference preference{.first = {3, 2, 1, 0}, .learned_by = {.conflict = 1, .size = 0}};
  ConflictMemory memory(model, preference);
  CHECK(memory.learn() == Ranks{3, 2, 1, 0});
  memory.note(2);
  CHECK(memory.learn() == Ranks{3, 1, 2, 0});
  memory.note(0);
  CHECK(memory.learn() == Ranks{1, 0, 3, 2});
}

}  // namespace
}  // namespace trainscope::memplan
