// Decides whether a task fits below a height: depth first over canonical placements.
//
// A canonical placement is one in which no box can sink. Its boxes, taken in order of address, each
// lie at the lowest address that is free above those taken before; so a search that always adds a
// next box there, never below the one before, misses nothing (Moffitt, "MiniMalloc", ASPLOS 2023).
//
// Such a search either succeeds soon or is lost in the consequences of an early choice. So it goes
// back over choices that have nothing to do with a failure (Prosser's backjumping, 1993), and after
// half as many dead ends as there are boxes it starts again, with the boxes first that did not fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "memplan/exact/culprits.h"
#include "memplan/exact/failures.h"
#include "memplan/exact/model.h"
#include "memplan/exact/preference.h"

namespace trainscope::memplan {

class CanonicalSearch {
 public:
  enum class State { kRunning, kFits, kImpossible };

  CanonicalSearch(std::shared_ptr<const SearchModel> model, const Preference& preference,
                  Units height);

  // Goes on until the question is decided, about `visits` more boxes (or eight slots) were looked
  // at, or `should_stop()`, which is asked rarely, says so.
  template <typename ShouldStop>
  State advance(std::uint64_t visits, const ShouldStop& should_stop) {
    constexpr int kAdvancesPerQuestion = 64;
    const std::uint64_t end = visits_ + visits;
    while (state_ == State::kRunning && visits_ < end && !should_stop()) {
      for (int i = 0; i < kAdvancesPerQuestion && state_ == State::kRunning && visits_ < end; ++i) {
        advance_once();
      }
    }
    return state_;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::uint64_t visits() const { return visits_; }
  // One per box of the model, once it fits.
  [[nodiscard]] const std::vector<Units>& offsets() const { return offset_; }
  // Once impossible: no placement is lower than this either.
  [[nodiscard]] Units next_height() const { return next_height_; }

 private:
  static constexpr std::size_t kWhy = 0;  // the row of why_

  // Boxes still to be placed that share no slot with any other such box.
  struct Component {
    std::int32_t first_box = 0;  // a range of pool_, by first slot
    std::int32_t end_box = 0;
    std::int32_t first_slot = 0;
    std::int32_t end_slot = 0;
    Units level = 0;              // the next box lies at or above this address; at this address
    std::int32_t last_rank = -1;  // only if its rank is above this one
    Units ceiling = 0;            // ... and below this address, or another box would fit under it
    Units fullest = 0;            // the most units still to be placed in one slot
    Units slack = 0;              // what the tightest slot has to spare
    FailureKey key = {};
  };

  // Lengths of the stacks below, to go back to.
  struct Marks {
    std::size_t pool = 0;
    std::size_t candidates = 0;
    std::size_t children = 0;
    std::size_t raised = 0;
    std::size_t placed = 0;
  };

  // One choice: which box of a component comes next.
  struct Frame {
    Component component = {};
    Marks marks = {};
    std::size_t next_candidate = 0;  // in candidates_; they end where the pool of children begins
    std::size_t end_candidate = 0;
    std::size_t next_child = 0;  // in children_: what the choice left, still to be solved
    std::size_t end_child = 0;
    std::int32_t chosen = -1;  // the box, or none
    bool jumped_over = false;  // not all of it was searched: its failure proves nothing
  };

  struct Raised {
    std::int32_t box = 0;
    Units offset = 0;  // before
    std::int32_t raiser = -1;
  };
  struct SpanTop {
    Units top = -1;  // where the latest box of a span ends
    std::int32_t rank = -1;
  };
  struct Placed {
    std::int32_t box = 0;
    SpanTop before = {};  // of its span
  };
  // The lowest address that a box can still get.
  struct Reach {
    Units offset = 0;
    std::int32_t box = 0;
  };

  static bool meet(const SearchBox& a, const SearchBox& b) {
    return a.first_slot < b.end_slot && b.first_slot < a.end_slot;
  }
  const SearchBox& box(std::int32_t index) const {
    return model_.boxes[static_cast<std::size_t>(index)];
  }
  Units& offset(std::int32_t index) { return offset_[static_cast<std::size_t>(index)]; }
  std::int32_t rank(std::int32_t index) const { return rank_[static_cast<std::size_t>(index)]; }
  SpanTop& span_top(std::int32_t index) {
    return span_tops_[static_cast<std::size_t>(box(index).span)];
  }

  void advance_once();
  void open(const Component& component);
  void try_next_candidate();
  void finish_top();
  void fail_top();
  bool drop_top();
  void start_again(const Component& whole);
  void undo(const Marks& marks);
  [[nodiscard]] Marks marks() const;

  void place(const Component& component, std::int32_t index);
  bool split(const Component& component, std::int32_t index);

  // search_bounds.cpp
  bool analyse(Component& component);
  void collect_reach(Component& component);
  bool raise_unsupported();
  bool fits_suspects(const Component& component, std::int32_t index);
  bool fits_slot(std::int32_t slot, std::int32_t index);
  void suspect(std::int32_t slot);
  bool fits_every_slot(Component& component);
  void blame_slot(std::size_t i, Units above);
  Units stack(std::int32_t first_slot, std::int32_t end_slot, Units size);
  // Two boxes of one span, one directly on the other, may change places: only one way is tried.
  bool out_of_turn(std::int32_t index) {
    const SpanTop& last = span_top(index);
    return box(index).alignment == 1 && last.top == offset(index) && last.rank > rank(index);
  }
  void overflow(Units height) { next_height_ = std::min(next_height_, height); }

  std::shared_ptr<const SearchModel> shared_model_;
  const SearchModel& model_ = *shared_model_;  // one indirection less, in the innermost loops
  Ranks rank_;
  ConflictMemory memory_;
  Units height_ = 0;
  State state_ = State::kRunning;
  Units next_height_ = std::numeric_limits<Units>::max();
  std::uint64_t visits_ = 0;

  std::vector<Units> offset_;       // placed: where; else the lowest address still possible
  std::vector<char> placed_flags_;  // per box
  std::vector<SpanTop> span_tops_;  // per span
  std::vector<Frame> frames_;
  std::vector<std::int32_t> pool_;
  std::vector<std::int32_t> candidates_;
  std::vector<Component> children_;
  std::vector<Raised> raised_;  // what choices did to boxes still to be placed
  std::vector<Placed> placed_;
  FailureTable failures_;
  std::vector<std::int32_t> suspects_;  // slots that were too full, the latest first

  // Attempts that jump leave possibilities out, so some do not; they are allowed ever more dead
  // ends, a quarter of what all that jump have had, so that one of them comes to its end.
  bool may_jump_ = true;
  std::uint64_t dead_ends_ = 0;  // of this attempt
  std::uint64_t most_dead_ends_ = 0;
  std::uint64_t jumping_dead_ends_ = 0;
  std::uint64_t complete_dead_ends_ = 8;  // of the next complete attempt, at most
  Culprits culprits_;
  BoxSets conflicts_;  // per frame: placed boxes without which some candidate might have done
  BoxSets why_;        // one set: why the latest candidate, or frame, failed

  std::vector<Reach> reach_;  // scratch of analyse(), lowest first
  std::vector<std::int32_t> unsupported_;
  std::vector<Units> reach_of_;  // per box
  std::vector<Units> stacked_;   // per slot
};

}  // namespace trainscope::memplan
