// Races the exact search in several orders for one height.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memplan/deadline.h"
#include "memplan/exact/model.h"
#include "memplan/exact/preference.h"

namespace trainscope::memplan {

struct Effort {
  std::uint64_t visits = 0;  // boxes looked at, all orders together; the same on any machine
  Deadline deadline = {};
  int threads = 1;
};

enum class Verdict { kFits, kImpossible, kUnknown };

struct Decision {
  Verdict verdict = Verdict::kUnknown;
  std::vector<Units> offsets = {};  // one per box of the model, if it fits
  Units next_height = 0;            // no placement is lower, if it is impossible
  std::uint64_t visits = 0;         // spent
};

class CanonicalSearch;

// Asks whether the model fits below one height: a search for each preference. They advance in
// rounds of equal effort, and of those that decide in one round the first counts; so without a
// deadline the decision does not depend on `Effort::threads`.
class HeightRace {
 public:
  HeightRace(const std::shared_ptr<const SearchModel>& model,
             const std::vector<Preference>& preferences, Units height);
  ~HeightRace();

  // Goes on for `effort.visits` more. The decision's visits are those of this call.
  [[nodiscard]] Decision advance(const Effort& effort);

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  // Rounds below the first are over before a thread has started; in long ones searches go on that
  // another has made superfluous.
  static constexpr std::uint64_t kFirstRoundVisits = 1 << 16;
  static constexpr std::uint64_t kLongestRoundVisits = 1 << 19;

  void run_round(std::uint64_t visits, const Effort& effort);
  void work(std::uint64_t visits, const Effort& effort);
  Decision collect();

  std::vector<std::unique_ptr<CanonicalSearch>> searches_;
  std::uint64_t next_round_ = kFirstRoundVisits;  // visits of each search
  std::vector<std::uint64_t> visits_at_round_;    // of each search, as the last round began
  std::uint64_t visits_before_ = 0;               // of all calls so far
  std::atomic<std::size_t> decided_ = kNobody;    // the earliest search that has
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace trainscope::memplan
