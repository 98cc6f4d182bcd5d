// Runs placers over the sections of a problem, on any number of threads, and keeps the lowest
// placements.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "memplan/deadline.h"
#include "memplan/place/decompose.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {

// The best placement of one section so far. Heights at or below the target count as the target:
// they are all good enough, and the earliest placer to get there wins.
struct Best {
  std::atomic<std::int64_t> height_bytes = std::numeric_limits<std::int64_t>::max();
  // The earliest placer that got to the target.
  std::atomic<std::size_t> reached_by = std::numeric_limits<std::size_t>::max();
  std::size_t placer = 0;  // which one; the earlier wins a tie
  std::string_view method = {};
  std::vector<std::int64_t> offsets = {};
};

// A pair of placer and section is skipped or broken off only if it cannot win any more: its
// placement is higher already than one that is known, or an earlier placer has reached the target.
// A tie goes to the earlier placer. So without a deadline the outcome does not depend on who runs
// what when.
class Race {
 public:
  struct Goal {
    std::int64_t target_bytes = 0;
    Deadline deadline = {};
    int threads = 1;
  };

  Race(const std::vector<Section>& sections, const Goal& goal)
      : sections_(sections), goal_(goal), best_(sections.size()), most_visits_(sections.size()) {}

  // Lets these placers, which come after all that ran before, place the sections above the target.
  // Of the first run the first placer always finishes. `visits_for(section)` is what a placer may
  // spend on the section, 0 for none of them; it is asked before the placers start.
  template <typename VisitsFor>
  void run(std::span<const Placer> placers, const VisitsFor& visits_for) {
    for (std::size_t section = 0; section < sections_.size(); ++section)
      most_visits_[section] = visits_for(section);
    run(placers);
  }

  [[nodiscard]] std::vector<Best>& best() { return best_; }

 private:
  void run(std::span<const Placer> placers);
  [[nodiscard]] std::size_t helpful_threads() const;
  void work();
  bool worth_running(std::size_t placer, std::size_t section) const;
  void place(std::size_t placer, std::size_t section);

  const std::vector<Section>& sections_;
  Goal goal_;
  std::vector<Best> best_;
  std::vector<std::uint64_t> most_visits_;  // by section
  std::span<const Placer> placers_;         // that run now
  std::size_t first_placer_ = 0;            // the number of placers_.front()
  std::mutex mutex_;
  std::atomic<std::size_t> next_ =
      0;  // of the pairs (placer, section), all sections of a placer first
};

}  // namespace trainscope::memplan
