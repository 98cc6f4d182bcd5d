// Rounds of growing length, in which every order goes on from where it stopped.
#include "memplan/exact/decide.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>

#include "memplan/exact/search.h"

namespace trainscope::memplan {

using std::size_t;
using std::uint64_t;

HeightRace::HeightRace(const std::shared_ptr<const SearchModel>& model,
                       const std::vector<Preference>& preferences, Units height) {
  for (const Preference& preference : preferences) {
    searches_.push_back(std::make_unique<CanonicalSearch>(model, preference, height));
  }
  visits_at_round_.resize(searches_.size());
}

HeightRace::~HeightRace() = default;

Decision HeightRace::advance(const Effort& effort) {
  const uint64_t visits_each = effort.visits / searches_.size();
  for (uint64_t spent_each = 0; spent_each < visits_each && decided_ == kNobody;) {
    if (effort.deadline.expired()) break;
    const uint64_t visits = std::min(next_round_, visits_each - spent_each);
    run_round(visits, effort);
    spent_each += visits;
    next_round_ = std::min(2 * next_round_, kLongestRoundVisits);
  }
  return collect();
}

void HeightRace::run_round(uint64_t visits, const Effort& effort) {
  next_ = 0;
  for (size_t i = 0; i < searches_.size(); ++i) visits_at_round_[i] = searches_[i]->visits();
  std::vector<std::future<void>> helpers;
  if (visits > kFirstRoundVisits) {
    const size_t useful = std::min(static_cast<size_t>(effort.threads), searches_.size());
    try {
      while (helpers.size() + 1 < useful) {
        helpers.push_back(
            std::async(std::launch::async, [this, visits, &effort] { work(visits, effort); }));
      }
    } catch (const std::system_error&) {
      // No more threads to be had: those that exist do all the work.
    }
  }
  work(visits, effort);
  for (std::future<void>& helper : helpers) helper.get();
}

void HeightRace::work(uint64_t visits, const Effort& effort) {
  for (size_t i = next_++; i < searches_.size(); i = next_++) {
    // An earlier search that has decided makes the later ones superfluous, never the reverse.
    const auto state =
        searches_[i]->advance(visits, [&] { return decided_ < i || effort.deadline.expired(); });
    if (state == CanonicalSearch::State::kRunning) continue;
    for (size_t known = decided_; i < known && !decided_.compare_exchange_weak(known, i);) {
    }
  }
}

Decision HeightRace::collect() {
  Decision decision;
  // How far searches behind the winner came in its round is a matter of threads: not counted.
  for (size_t i = 0; i < searches_.size(); ++i) {
    decision.visits += i > decided_ ? visits_at_round_[i] : searches_[i]->visits();
  }
  decision.visits -= std::exchange(visits_before_, decision.visits);
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

}  // namespace trainscope::memplan
