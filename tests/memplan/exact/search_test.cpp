// Tests of the exact search: every verdict against brute force.
#include "memplan/exact/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "memplan/exact/decide.h"
#include "tests/memplan/dice.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// Boxes, sometimes with obstacles and alignments, on few slots so that much meets.
Task random_task(std::uint64_t seed, int boxes) {
  testing::Dice dice(seed);
  constexpr int kSlots = 6;
  Task task{.slot_count = kSlots, .base_bytes = 4 * dice.between(0, 2)};
  for (int i = 0; i < boxes; ++i) {
    const auto first = static_cast<int32_t>(dice.between(0, kSlots - 1));
    const auto end = static_cast<int32_t>(dice.between(first + 1, kSlots));
    task.boxes.push_back({.first_slot = first,
                          .end_slot = end,
                          .duration = end - first,
                          .size_bytes = dice.between(1, 9)});
    if (seed % 3 == 1 && dice.between(0, 2) == 0) task.boxes.back().alignment_bytes = 4;
  }
  // Some come twice, for the rules about equals.
  if (boxes > 3 && seed % 2 == 0) task.boxes[1] = task.boxes[0];
  for (int i = 0; seed % 4 == 3 && i < 2; ++i) {
    const auto first = static_cast<int32_t>(dice.between(0, kSlots - 1));
    const int64_t begin = dice.between(0, 20) + 30 * i;  // never two on the same bytes
    task.obstacles.push_back({.first_slot = first,
                              .end_slot = static_cast<int32_t>(dice.between(first + 1, kSlots)),
                              .begin_bytes = begin,
                              .end_bytes = begin + dice.between(1, 9)});
  }
  return task;
}

bool meet(const Box& box, const auto& other) {
  return box.first_slot < other.end_slot && other.first_slot < box.end_slot;
}

// The lowest address above all boxes placed so far that the box meets.
int64_t lowest_above(const Task& task, const std::vector<size_t>& below, size_t index,
                     const std::vector<int64_t>& offsets) {
  const Box& box = task.boxes[index];
  int64_t offset = task.base_bytes;
  for (const size_t other : below) {
    if (!meet(box, task.boxes[other])) continue;
    offset = std::max(offset, offsets[other] + task.boxes[other].size_bytes);
  }
  for (bool moved = true; moved;) {
    moved = false;
    offset = align_up(offset, box.alignment_bytes);
    for (const Obstacle& obstacle : task.obstacles) {
      if (!meet(box, obstacle) || offset >= obstacle.end_bytes ||
          offset + box.size_bytes <= obstacle.begin_bytes) {
        continue;
      }
      offset = obstacle.end_bytes;
      moved = true;
    }
  }
  return offset;
}

// Any placement, its boxes let down in order of address, becomes one of these and not higher.
int64_t optimum_bytes(const Task& task) {
  std::vector<size_t> order(task.boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> offsets(order.size());
  do {
    int64_t height = task.base_bytes;
    std::vector<size_t> below;
    for (const size_t index : order) {
      offsets[index] = lowest_above(task, below, index, offsets);
      height = std::max(height, offsets[index] + task.boxes[index].size_bytes);
      below.push_back(index);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<Preference> preferences_of(const Task& task, const SearchModel& model) {
  std::vector<double> durations;
  for (const int32_t index : model.task_index) {
    durations.push_back(static_cast<double>(task.boxes[static_cast<size_t>(index)].duration));
  }
  return make_preferences(model, durations);
}

std::shared_ptr<const SearchModel> shared_model(const Task& task, int64_t highest_bytes) {
  std::optional<SearchModel> model = make_search_model(task, highest_bytes);
  REQUIRE(model.has_value());
  return std::make_shared<const SearchModel>(*std::move(model));
}

constexpr auto kNever = [] { return false; };
constexpr std::uint64_t kPlenty = 1'000'000'000;

void check_layout(const SearchModel& model, const std::vector<Units>& offsets, Units height) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const SearchBox& a = model.boxes[i];
    CHECK(model.lowest(a, offsets[i]) == offsets[i]);  // aligned, clear of obstacles
    CHECK(offsets[i] >= model.base);
    CHECK(offsets[i] + a.size <= height);
    for (size_t j = 0; j < i; ++j) {
      const SearchBox& b = model.boxes[j];
      const bool share_slot = a.first_slot < b.end_slot && b.first_slot < a.end_slot;
      const bool share_bytes = offsets[i] < offsets[j] + b.size && offsets[j] < offsets[i] + a.size;
      CHECK_FALSE((share_slot && share_bytes));
    }
  }
}

TEST_CASE("search: fits exactly from the optimum on, in every order") {
  int open_below = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Task task = random_task(seed, 2 + static_cast<int>(seed % 6));
    const int64_t optimum = optimum_bytes(task);
    const auto model = shared_model(task, 10 * optimum);
    const auto units = static_cast<Units>(optimum / model->unit_bytes);
    CHECK(optimum % model->unit_bytes == 0);
    for (const Preference& preference : preferences_of(task, *model)) {
      INFO("seed ", seed);
      CanonicalSearch fitting(model, preference, units);
      CHECK(fitting.advance(kPlenty, kNever) == CanonicalSearch::State::kFits);
      check_layout(*model, fitting.offsets(), units);
      CanonicalSearch lower(model, preference, units - 1);
      CHECK(lower.advance(kPlenty, kNever) == CanonicalSearch::State::kImpossible);
      CHECK(lower.next_height() <= units);
      CHECK(lower.next_height() >= units);
      open_below += lower.visits() > 100 ? 1 : 0;
    }
  }
  CHECK(open_below > 0);  // not all were refused at first sight
}

TEST_CASE("search: goes on where it stopped") {
  const Task task = random_task(8, 7);
  const int64_t optimum = optimum_bytes(task);
  const auto model = shared_model(task, 10 * optimum);
  const std::vector<Preference> preferences = preferences_of(task, *model);
  const auto units = static_cast<Units>(optimum / model->unit_bytes);
  CanonicalSearch at_once(model, preferences[0], units);
  CanonicalSearch in_parts(model, preferences[0], units);
  at_once.advance(kPlenty, kNever);
  while (in_parts.advance(1, kNever) == CanonicalSearch::State::kRunning) {
  }
  CHECK(in_parts.offsets() == at_once.offsets());
  CHECK(in_parts.visits() == at_once.visits());
}

TEST_CASE("search: stops when told to") {
  const Task task = random_task(8, 7);
  const auto model = shared_model(task, 1000);
  const std::vector<Preference> preferences = preferences_of(task, *model);
  CanonicalSearch search(model, preferences[0], static_cast<Units>(1000 / model->unit_bytes));
  const std::uint64_t before = search.visits();
  CHECK(search.advance(kPlenty, [] { return true; }) == CanonicalSearch::State::kRunning);
  CHECK(search.visits() == before);
}

}  // namespace
}  // namespace trainscope::memplan
