// Which boxes the exact search prefers: at first by what they are, later by what it failed on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memplan/exact/model.h"

namespace trainscope::memplan {

// The rank of every box: its place in the order of preference.
using Ranks = std::vector<std::int32_t>;

// A box's weight in the orders that are learned: conflicts ^ conflict * size ^ size, where the
// conflicts are those of all its slots.
struct Exponents {
  int conflict = 1;
  int size = 0;
};

struct Preference {
  Ranks first = {};           // the order of the first attempt, and for ties later
  Exponents learned_by = {};  // how later attempts weigh what failed in those before
};

// Several, which succeed on different problems. `durations` are the lengths of the boxes'
// lifetimes.
[[nodiscard]] std::vector<Preference> make_preferences(const SearchModel& model,
                                                       std::span<const double> durations);

// Counts the slots in which boxes did not fit, and orders boxes by them: what is alive in slots
// that are hard to fill goes first (as in "dom/wdeg" of Boussemart et al., ECAI 2004).
class ConflictMemory {
 public:
  ConflictMemory(std::shared_ptr<const SearchModel> model, Preference preference);

  void note(std::int32_t slot) { of_this_attempt_[static_cast<std::size_t>(slot)] += 1; }
  // Ends an attempt and returns the order for the next one.
  [[nodiscard]] Ranks learn();

 private:
  std::shared_ptr<const SearchModel> model_;
  Preference preference_;
  std::vector<double> of_this_attempt_;  // per slot
  std::vector<double> weight_;           // per slot, of all attempts
};

}  // namespace trainscope::memplan
