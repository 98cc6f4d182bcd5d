// Rounds of growing length, in which every order goes on from where it stopped.
#include "memplan/exact/decide.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <system_error>

#include "memplan/exact/search.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;

// Rounds below this are over before a thread has started.
constexpr uint64_t kFirstRoundVisits = 1 << 16;

// Larger keys go first. Doubles, because an area (units x steps) can be beyond int64.
using Key = std::array<double, 3>;

std::vector<int32_t> rank_by(const std::vector<Key>& keys) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  std::vector<int32_t> ranks(keys.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ranks[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  return ranks;
}

// For each box the most units alive in one of its slots.
std::vector<int64_t> crowds(const SearchModel& model) {
  std::vector<int64_t> live(static_cast<size_t>(model.slot_count), 0);
  const auto add = [&](const auto& box) {
    for (int32_t slot = box.first_slot; slot < box.end_slot; ++slot) {
      live[static_cast<size_t>(slot)] += box.size;
    }
  };
  for (const SearchBox& box : model.boxes) add(box);
  for (const PinnedBox& box : model.pinned) add(box);
  std::vector<int64_t> most;
  for (const SearchBox& box : model.boxes) {
    most.push_back(*std::max_element(live.begin() + box.first_slot, live.begin() + box.end_slot));
  }
  return most;
}

class Rounds {
 public:
  Rounds(const SearchModel& model, const Ranks& ranks, Units height, const Effort& effort)
      : effort_(effort) {
    for (const std::vector<int32_t>& rank : ranks) {
      searches_.push_back(std::make_unique<CanonicalSearch>(model, rank, height));
    }
  }

  Decision run() {
    uint64_t spent_each = 0;
    for (uint64_t round = kFirstRoundVisits; decided_ == kNobody; round *= 2) {
      const uint64_t left = effort_.visits / searches_.size() - spent_each;
      if (left == 0 || effort_.expired()) break;
      const uint64_t visits = std::min(round, left);
      run_round(visits);
      spent_each += visits;
    }
    return collect();
  }

 private:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  void run_round(uint64_t visits) {
    next_ = 0;
    std::vector<std::future<void>> helpers;
    if (visits > kFirstRoundVisits) {
      const size_t useful = std::min(static_cast<size_t>(effort_.threads), searches_.size());
      try {
        while (helpers.size() + 1 < useful) {
          helpers.push_back(std::async(std::launch::async, [this, visits] { work(visits); }));
        }
      } catch (const std::system_error&) {
        // No more threads to be had: those that exist do all the work.
      }
    }
    work(visits);
    for (std::future<void>& helper : helpers) helper.get();
  }

  void work(uint64_t visits) {
    for (size_t i = next_++; i < searches_.size(); i = next_++) {
      // An earlier order that has decided makes the later ones superfluous, never the reverse.
      const auto state =
          searches_[i]->advance(visits, [&] { return decided_ < i || effort_.expired(); });
      if (state == CanonicalSearch::State::kRunning) continue;
      for (size_t known = decided_; i < known && !decided_.compare_exchange_weak(known, i);) {
      }
    }
  }

  Decision collect() const {
    Decision decision;
    for (const auto& search : searches_) decision.visits += search->visits();
    if (decided_ == kNobody) return decision;
    const CanonicalSearch& winner = *searches_[decided_];
    if (winner.state() == CanonicalSearch::State::kFits) {
      decision.verdict = Verdict::kFits;
      decision.offsets = winner.offsets();
    } else {
      decision.verdict = Verdict::kImpossible;
      decision.next_height = winner.next_height();
    }
    return decision;
  }

  const Effort& effort_;
  std::vector<std::unique_ptr<CanonicalSearch>> searches_;
  std::atomic<size_t> decided_ = kNobody;  // the earliest order that has
  std::atomic<size_t> next_ = 0;
};

}  // namespace

Ranks make_ranks(const Task& task, const SearchModel& model) {
  const std::vector<int64_t> crowd = crowds(model);
  std::vector<Key> wat;
  std::vector<Key> taw;
  std::vector<Key> twa;
  for (size_t i = 0; i < model.boxes.size(); ++i) {
    const auto index = static_cast<size_t>(model.task_index[i]);
    const auto width = static_cast<double>(task.boxes[index].duration_steps);
    const double area = width * static_cast<double>(model.boxes[i].size);
    const auto total = static_cast<double>(crowd[i]);
    wat.push_back({width, area, total});
    taw.push_back({total, area, width});
    twa.push_back({total, width, area});
  }
  return {rank_by(wat), rank_by(taw), rank_by(twa)};
}

Decision decide(const SearchModel& model, const Ranks& ranks, Units height, const Effort& effort) {
  return Rounds(model, ranks, height, effort).run();
}

}  // namespace trainscope::memplan
