// The largest batch of sizes that rise as they like, and how few attempts lines take.
#include "engine/run/batch/batch_search.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

namespace trainscope::test {
namespace {

// Attempts of a search, and what it answered.
struct Searched {
  std::int64_t answer = 0;
  std::set<std::int64_t> fitted;
  std::set<std::int64_t> refused;

  std::size_t attempts() const { return fitted.size() + refused.size(); }
};

enum class Knows { kAll, kRefusals };  // which attempts say how many bytes they need

template <typename BytesOf>
Searched search(const BatchSearch& from, Knows knows, const BytesOf& bytes_of) {
  Searched result;
  result.answer = largest_batch(from, [&](std::int64_t batch) -> BatchNeed {
    const std::int64_t bytes = bytes_of(batch);
    const bool fits = bytes <= from.budget_bytes;
    CHECK((fits ? result.fitted : result.refused).insert(batch).second);  // none twice
    return {.fits = fits, .bytes = fits && knows == Knows::kRefusals ? 0 : bytes};
  });
  return result;
}

// The answer was tried and fits, the next one was tried and does not.
void check_exact(const Searched& searched, const BatchSearch& from) {
  CHECK((searched.answer == from.fits || searched.fitted.contains(searched.answer)));
  CHECK((searched.answer == kMostBatch || searched.refused.contains(searched.answer + 1)));
}

}  // namespace

TEST_CASE("batch search: exact on lines, steps and curves, whatever it is told at first") {
  const auto line = [](std::int64_t batch) { return 1000 + 70 * batch; };
  const auto stairs = [](std::int64_t batch) { return 1000 + 700 * ((batch + 9) / 10); };
  const auto square = [](std::int64_t batch) { return 1000 + 3 * batch * batch; };
  const auto root = [](std::int64_t batch) {
    return 1000 + static_cast<std::int64_t>(4000 * std::sqrt(static_cast<double>(batch)));
  };
  const auto jump = [](std::int64_t batch) { return batch < 40 ? 2000 : 900'000 + batch; };
  for (const Knows knows : {Knows::kAll, Knows::kRefusals}) {
    for (const std::int64_t budget : {999, 1000, 1069, 1070, 5000, 64'000, 899'000}) {
      for (const std::int64_t first : {1, 2, 4, 50, 100'000}) {
        for (const std::int64_t fixed : {0, 990, 5000}) {
          CAPTURE(budget);
          CAPTURE(first);
          CAPTURE(fixed);
          const BatchSearch from{
              .budget_bytes = budget, .fixed_bytes = fixed, .first = first, .stride = first};
          const auto check = [&](const auto& bytes_of) {
            const Searched searched = search(from, knows, bytes_of);
            check_exact(searched, from);
            CHECK(searched.attempts() <= 40);
          };
          check(line);
          check(stairs);
          check(square);
          check(root);
          check(jump);
        }
      }
    }
  }
}

TEST_CASE("batch search: a line takes the answer, its neighbour and an attempt to aim by") {
  const auto line = [](std::int64_t batch) { return 5000 + 70 * batch; };
  for (const std::int64_t budget : {6000, 64'000, 899'000}) {
    CAPTURE(budget);
    const BatchSearch from{.budget_bytes = budget, .fixed_bytes = 5000, .first = 100'000};
    const Searched searched = search(from, Knows::kRefusals, line);
    CHECK(searched.answer == (budget - 5000) / 70);
    CHECK(searched.attempts() == 3);
  }
}

TEST_CASE("batch search: what fits is not tried again, and nothing beyond the limit is") {
  const auto line = [](std::int64_t batch) { return 70 * batch; };
  const BatchSearch known{.budget_bytes = 700, .fits = 10, .first = 3};
  const Searched searched = search(known, Knows::kAll, line);
  CHECK(searched.answer == 10);
  CHECK(searched.attempts() == 1);
  const BatchSearch roomy{.budget_bytes = std::int64_t{1} << 40, .first = 4, .stride = 4};
  for (const Knows knows : {Knows::kAll, Knows::kRefusals}) {
    const Searched all = search(roomy, knows, line);
    CHECK(all.answer == kMostBatch);
    CHECK(all.refused.empty());
    CHECK(all.attempts() < 30);
  }
}

}  // namespace trainscope::test
