// Intervals in one order of all operations, long enough that what they allow is allowed.
#include "memplan/streams/intervals.h"

#include <algorithm>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

class IntervalMaker {
 public:
  IntervalMaker(const StreamProblem& problem, const Clocks& clocks,
                const StreamLifetimes& lifetimes)
      : problem_(problem), clocks_(clocks), lifetimes_(lifetimes), place_(clocks.order.size()) {
    for (size_t i = 0; i < clocks.order.size(); ++i) {
      place_[at(clocks.order[i])] = static_cast<int64_t>(i);
    }
  }

  template <typename Lower, typename Upper>
  Problem make(const Lower& lower, const Upper& upper) const {
    Problem made{.alignment_bytes = problem_.alignment_bytes};
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const int64_t first = lower(i);
      made.buffers.push_back({.lower = first,
                              .upper = std::max(first + 1, upper(i)),
                              .size_bytes = problem_.buffers[i].size_bytes});
    }
    return made;
  }

  int64_t producer_place(size_t buffer) const {
    const int32_t producer = problem_.buffers[buffer].producer;
    return producer == kNoOperation ? 0 : place_[at(producer)];
  }

  int64_t first_unseen_place(size_t buffer) const {
    int64_t first = producer_place(buffer);
    for (int32_t s = 0; s < clocks_.streams; ++s) {
      const std::vector<int32_t>& operations = clocks_.in_stream[at(s)];
      const int32_t seen = lifetimes_.seen_at_birth[lifetimes_.at(buffer, s)];
      if (at(seen) < operations.size()) first = std::min(first, place_[at(operations[at(seen)])]);
    }
    return first;
  }

  int64_t end_of_uses(size_t buffer) const {
    const StreamBuffer& used = problem_.buffers[buffer];
    if (used.kept) return end();
    int64_t last = producer_place(buffer);
    for (const int32_t reader : used.readers) last = std::max(last, place_[at(reader)]);
    return last + 1;
  }

  int64_t end_of_unaware(size_t buffer) const {
    if (problem_.buffers[buffer].kept) return end();
    int64_t end = 0;
    for (int32_t s = 0; s < clocks_.streams; ++s) {
      const int32_t free = lifetimes_.free[lifetimes_.at(buffer, s)];
      if (free == 0) continue;
      end = std::max(end, place_[at(clocks_.in_stream[at(s)][at(free - 1)])] + 1);
    }
    return end;
  }

  // One more than there are operations, so that what is kept outlives what is read last.
  int64_t end() const { return static_cast<int64_t>(place_.size()) + 1; }

 private:
  const StreamProblem& problem_;
  const Clocks& clocks_;
  const StreamLifetimes& lifetimes_;
  std::vector<int64_t> place_;  // in the order of all operations
};

}  // namespace

IntervalProblem intervals_by_birth(const StreamProblem& problem, const Clocks& clocks,
                                   const StreamLifetimes& lifetimes) {
  const IntervalMaker maker(problem, clocks, lifetimes);
  bool exact = true;
  const auto lower = [&](size_t i) {
    const int64_t first = maker.first_unseen_place(i);
    exact = exact && first == maker.producer_place(i);
    return first;
  };
  Problem made = maker.make(lower, [&](size_t i) { return maker.end_of_uses(i); });
  return {.problem = std::move(made), .exact = exact};
}

IntervalProblem intervals_by_death(const StreamProblem& problem, const Clocks& clocks,
                                   const StreamLifetimes& lifetimes) {
  const IntervalMaker maker(problem, clocks, lifetimes);
  return {.problem = maker.make([&](size_t i) { return maker.producer_place(i); },
                                [&](size_t i) { return maker.end_of_unaware(i); })};
}

}  // namespace trainscope::memplan
