// What the search leaves out: components and candidates that no placement of the rest can save.
#include <algorithm>
#include <limits>

#include "memplan/exact/search.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

// Slots that take as long to stack as a box takes to be looked at.
constexpr int32_t kSlotsPerVisit = 8;

}  // namespace

// False if the component is known to be impossible.
bool CanonicalSearch::analyse(Component& component) {
  collect_reach(component);
  if (failures_.contains(component.key)) {
    for (const Reach& reach : reach_) culprits_.blame(why_, kWhy, reach.box);
    return false;
  }
  return raise_unsupported() && fits_every_slot(component);
}

// Sorts the boxes by the lowest address they can get if nothing else moves, and notes those that
// are below the level: they have to be lifted by a box yet to come.
void CanonicalSearch::collect_reach(Component& component) {
  reach_.clear();
  unsupported_.clear();
  component.ceiling = std::numeric_limits<Units>::max();
  for (int32_t i = component.first_box; i < component.end_box; ++i) {
    const int32_t index = pool_[static_cast<size_t>(i)];
    Units at = offset(index);
    component.ceiling = std::min(component.ceiling, at + box(index).size);
    const bool open =
        at > component.level || (at == component.level && rank(index) > component.last_rank);
    const auto number = static_cast<std::uint64_t>(index) + 1;
    if (open) {
      const auto fact = 2 * static_cast<std::uint64_t>(at) + (out_of_turn(index) ? 3U : 2U);
      component.key.add(number, fact);
    } else {
      component.key.add(number, 0);
      unsupported_.push_back(index);
      at = model_.lowest(box(index), std::max(at, component.level));
    }
    reach_of_[static_cast<size_t>(index)] = at;
    reach_.push_back({.offset = at, .box = index});
  }
  if (!unsupported_.empty()) {
    component.key.add(0, static_cast<std::uint64_t>(component.level));
  }
  std::sort(reach_.begin(), reach_.end(),
            [](const Reach& a, const Reach& b) { return a.offset < b.offset; });
}

// A box below the level ends up on another one. False if none can come under it any more: the box
// would fit where it is, below all the others, and such a placement is not canonical.
bool CanonicalSearch::raise_unsupported() {
  bool changed = false;
  for (const int32_t index : unsupported_) {
    const SearchBox& lifted = box(index);
    const Units top = offset(index) + lifted.size;
    Units support = std::numeric_limits<Units>::max();
    bool blocked = false;
    for (const Reach& reach : reach_) {
      if (reach.offset >= support || (!blocked && reach.offset >= top)) break;
      if (reach.box == index || !meet(lifted, box(reach.box))) continue;
      blocked = true;
      support = std::min(support, reach.offset + box(reach.box).size);
    }
    if (!blocked) {
      for (const Reach& reach : reach_) {
        if (meet(lifted, box(reach.box))) culprits_.blame(why_, kWhy, reach.box);
      }
      return false;
    }
    Units& known = reach_of_[static_cast<size_t>(index)];
    support = model_.lowest(lifted, support);
    changed = changed || support > known;
    known = std::max(known, support);
  }
  if (!changed) return true;
  for (Reach& reach : reach_) reach.offset = reach_of_[static_cast<size_t>(reach.box)];
  std::sort(reach_.begin(), reach_.end(),
            [](const Reach& a, const Reach& b) { return a.offset < b.offset; });
  return true;
}

// In each slot, whatever cannot begin below some address has to fit above it.
bool CanonicalSearch::fits_every_slot(Component& component) {
  std::fill(stacked_.begin() + component.first_slot, stacked_.begin() + component.end_slot, 0);
  component.slack = height_;
  component.fullest = 0;
  size_t pinned = 0;
  for (size_t i = reach_.size(); i-- > 0;) {
    const auto [at, index] = reach_[i];
    for (; pinned < model_.pinned.size() && model_.pinned[pinned].begin >= at; ++pinned) {
      const PinnedBox& other = model_.pinned[pinned];
      if (other.begin >= height_) continue;
      stack(std::max(other.first_slot, component.first_slot),
            std::min(other.end_slot, component.end_slot),
            std::min(other.size, height_ - other.begin));
    }
    const Units above = stack(box(index).first_slot, box(index).end_slot, box(index).size);
    component.slack = std::min(component.slack, height_ - above - at);
    if (component.slack < 0) {
      overflow(at + above);
      blame_slot(i, above);
      return false;
    }
    component.fullest = std::max(component.fullest, above);
  }
  // What is pinned low does not have to fit above a candidate: no such shortcut then.
  if (!model_.pinned.empty()) component.fullest = 0;
  visits_ += reach_.size();
  return true;
}

// Notes in which slot the boxes from the i-th of reach_ on do not fit, and what holds them up.
void CanonicalSearch::blame_slot(size_t i, Units above) {
  int32_t slot = box(reach_[i].box).first_slot;
  while (stacked_[static_cast<size_t>(slot)] != above) ++slot;
  suspect(slot);
  visits_ += reach_.size() - i;
  for (; i < reach_.size(); ++i) {
    const SearchBox& other = box(reach_[i].box);
    if (other.first_slot <= slot && slot < other.end_slot) {
      culprits_.blame(why_, kWhy, reach_[i].box);
    }
  }
}

// Adds the size to the slots and returns the most that one of them now holds.
Units CanonicalSearch::stack(int32_t first_slot, int32_t end_slot, Units size) {
  Units most = 0;
  for (int32_t slot = first_slot; slot < end_slot; ++slot) {
    Units& here = stacked_[static_cast<size_t>(slot)];
    here += size;
    most = std::max(most, here);
  }
  visits_ += static_cast<std::uint64_t>(std::max(0, end_slot - first_slot)) / kSlotsPerVisit;
  return most;
}

// Looks at the slots first that were too full lately: most candidates fail there, and a slot takes
// a fraction of the time of them all.
bool CanonicalSearch::fits_suspects(const Component& component, int32_t index) {
  for (const int32_t slot : suspects_) {
    if (slot < component.first_slot || slot >= component.end_slot) continue;
    if (!fits_slot(slot, index)) {
      suspect(slot);
      return false;
    }
  }
  return true;
}

// The slot if the box was placed: whatever cannot begin below some address has to fit above it.
bool CanonicalSearch::fits_slot(int32_t slot, int32_t index) {
  const SearchBox& candidate = box(index);
  const Units level = offset(index);
  reach_.clear();
  for (const int32_t other : model_.alive_in(slot)) {
    if (other == index || placed_flags_[static_cast<size_t>(other)] != 0) continue;
    const Units least = meet(candidate, box(other)) ? level + candidate.size : level;
    reach_.push_back({.offset = std::max(offset(other), least), .box = other});
  }
  visits_ += reach_.size();
  std::sort(reach_.begin(), reach_.end(),
            [](const Reach& a, const Reach& b) { return a.offset > b.offset; });
  Units above = 0;
  for (size_t i = 0; i < reach_.size(); ++i) {
    above += box(reach_[i].box).size;
    if (above + reach_[i].offset <= height_) continue;
    overflow(above + reach_[i].offset);
    for (size_t j = 0; j <= i; ++j) culprits_.blame(why_, kWhy, reach_[j].box);
    return false;
  }
  return true;
}

// Moves the slot to the front of the suspects.
void CanonicalSearch::suspect(int32_t slot) {
  constexpr size_t kMostSuspects = 6;
  memory_.note(slot);
  auto at = std::find(suspects_.begin(), suspects_.end(), slot);
  if (at == suspects_.end()) {
    if (suspects_.size() == kMostSuspects) suspects_.pop_back();
    at = suspects_.insert(suspects_.end(), slot);
  }
  std::rotate(suspects_.begin(), at, at + 1);
}

}  // namespace trainscope::memplan
