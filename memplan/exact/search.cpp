// The search: choices on a stack, each with the components that it leaves.
#include "memplan/exact/search.h"

#include <numeric>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

}  // namespace

CanonicalSearch::CanonicalSearch(std::shared_ptr<const SearchModel> model,
                                 const Preference& preference, Units height)
    : shared_model_(std::move(model)),
      rank_(preference.first),
      memory_(shared_model_, preference),
      height_(height),
      offset_(model_.boxes.size()),
      placed_flags_(model_.boxes.size(), 0),
      span_tops_(static_cast<size_t>(model_.span_count)),
      pool_(model_.boxes.size()),
      most_dead_ends_(model_.boxes.size() / 2),
      culprits_(model_.boxes.size()),
      conflicts_(model_.boxes.size()),
      why_(model_.boxes.size()),
      reach_of_(model_.boxes.size()),
      stacked_(static_cast<size_t>(model_.slot_count)) {
  std::iota(pool_.begin(), pool_.end(), 0);
  for (const int32_t index : pool_) offset(index) = model_.lowest(box(index), model_.base);
  Component whole{.end_box = static_cast<int32_t>(pool_.size()),
                  .end_slot = model_.slot_count,
                  .level = model_.base};
  why_.clear(kWhy);
  if (analyse(whole)) {
    open(whole);
  } else {
    state_ = State::kImpossible;
  }
}

CanonicalSearch::Marks CanonicalSearch::marks() const {
  return {.pool = pool_.size(),
          .candidates = candidates_.size(),
          .children = children_.size(),
          .raised = raised_.size(),
          .placed = placed_.size()};
}

void CanonicalSearch::advance_once() {
  const Frame& top = frames_.back();
  if (top.chosen < 0) {
    try_next_candidate();
  } else if (top.next_child < top.end_child) {
    open(Component(children_[top.next_child]));
  } else {
    finish_top();
  }
}

// Lists what may come next in the component, in order of rank.
void CanonicalSearch::open(const Component& component) {
  Frame frame{.component = component, .marks = marks()};
  conflicts_.clear(frames_.size());
  for (int32_t i = component.first_box; i < component.end_box; ++i) {
    const int32_t index = pool_[static_cast<size_t>(i)];
    const Units at = offset(index);
    if (at < component.level || at >= component.ceiling) continue;
    if (at == component.level && rank(index) <= component.last_rank) continue;
    const int32_t twin = box(index).twin;
    if (twin >= 0 && placed_flags_[static_cast<size_t>(twin)] == 0) continue;
    if (out_of_turn(index)) continue;
    // Everything else would have to lie above it, even where it is not.
    if (at + component.fullest > height_) {
      overflow(at + component.fullest);
      culprits_.blame(conflicts_, frames_.size(), index);
    } else {
      candidates_.push_back(index);
    }
  }
  const auto first = candidates_.begin() + static_cast<std::ptrdiff_t>(frame.marks.candidates);
  std::sort(first, candidates_.end(), [&](int32_t a, int32_t b) {
    return offset(a) != offset(b) ? offset(a) < offset(b) : rank(a) < rank(b);
  });
  frame.next_candidate = frame.marks.candidates;
  frame.end_candidate = candidates_.size();
  visits_ += static_cast<std::uint64_t>(component.end_box - component.first_box);
  frames_.push_back(frame);
}

void CanonicalSearch::try_next_candidate() {
  Frame& frame = frames_.back();
  if (frame.next_candidate == frame.end_candidate) return fail_top();
  const int32_t index = candidates_[frame.next_candidate++];
  const Marks before = marks();
  why_.clear(kWhy);
  bool possible = fits_suspects(frame.component, index);
  if (possible) {
    place(frame.component, index);
    possible = split(frame.component, index);
  }
  if (!possible) {
    why_.remove(kWhy, index);
    conflicts_.add_all(frames_.size() - 1, why_, kWhy);
    return undo(before);
  }
  frame.chosen = index;
  frame.next_child = before.children;
  frame.end_child = children_.size();
}

// The component is solved; its boxes stay where they are.
void CanonicalSearch::finish_top() {
  const Marks opened = frames_.back().marks;
  frames_.pop_back();
  pool_.resize(opened.pool);
  candidates_.resize(opened.candidates);
  children_.resize(opened.children);
  if (frames_.empty()) {
    state_ = State::kFits;
  } else {
    ++frames_.back().next_child;
  }
}

// The component cannot be solved, and so neither can the choices that left it: back to the latest
// one that contributed to the failure. Which did is told from what holds boxes up, not from the
// order in which boxes were passed by; so a jump may go too far, and what it leaves out stays open.
void CanonicalSearch::fail_top() {
  const Component whole = frames_.front().component;
  ++dead_ends_;
  why_.clear(kWhy);
  why_.add_all(kWhy, conflicts_, frames_.size() - 1);
  bool searched = drop_top();
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    const int32_t chosen = std::exchange(frame.chosen, -1);
    if (!may_jump_ || why_.contains(kWhy, chosen)) {
      why_.remove(kWhy, chosen);
      conflicts_.add_all(frames_.size() - 1, why_, kWhy);
      Marks choice = frame.marks;
      choice.candidates = frame.end_candidate;
      undo(choice);
      if (dead_ends_ >= most_dead_ends_) start_again(whole);
      return;
    }
    frame.jumped_over = true;
    searched = drop_top();
  }
  if (searched) {
    state_ = State::kImpossible;
  } else {
    start_again(whole);
  }
}

// Goes back to before the frame. False if not all of it was searched.
bool CanonicalSearch::drop_top() {
  const Frame top = frames_.back();
  undo(top.marks);
  frames_.pop_back();
  if (!top.jumped_over) {
    failures_.insert(top.component.key);
  } else if (!frames_.empty()) {
    frames_.back().jumped_over = true;
  }
  return !top.jumped_over;
}

// The next attempt, in an order that knows what failed in those before.
void CanonicalSearch::start_again(const Component& whole) {
  if (!frames_.empty()) undo(frames_.front().marks);
  frames_.clear();
  if (may_jump_) {
    jumping_dead_ends_ += dead_ends_;
  } else {
    complete_dead_ends_ *= 2;
  }
  dead_ends_ = 0;
  may_jump_ = jumping_dead_ends_ < 4 * complete_dead_ends_;
  most_dead_ends_ = may_jump_ ? model_.boxes.size() / 2 : complete_dead_ends_;
  rank_ = memory_.learn();
  open(whole);
}

void CanonicalSearch::undo(const Marks& marks) {
  for (; raised_.size() > marks.raised; raised_.pop_back()) {
    const Raised& last = raised_.back();
    offset(last.box) = last.offset;
    culprits_.set_raiser(last.box, last.raiser);
  }
  for (; placed_.size() > marks.placed; placed_.pop_back()) {
    const Placed& last = placed_.back();
    placed_flags_[static_cast<size_t>(last.box)] = 0;
    span_top(last.box) = last.before;
  }
  pool_.resize(marks.pool);
  candidates_.resize(marks.candidates);
  children_.resize(marks.children);
}

// Everything that meets the box now has to lie above it.
void CanonicalSearch::place(const Component& component, int32_t index) {
  const SearchBox& placed = box(index);
  const Units top = offset(index) + placed.size;
  culprits_.place(index, placed_.size());
  placed_.push_back({.box = index, .before = span_top(index)});
  placed_flags_[static_cast<size_t>(index)] = 1;
  span_top(index) = {.top = top, .rank = rank(index)};
  for (int32_t i = component.first_box; i < component.end_box; ++i) {
    const int32_t other = pool_[static_cast<size_t>(i)];
    if (other == index || offset(other) >= top || !meet(placed, box(other))) continue;
    raised_.push_back({.box = other, .offset = offset(other), .raiser = culprits_.raiser(other)});
    culprits_.set_raiser(other, index);
    offset(other) = model_.lowest(box(other), top);
  }
  visits_ += static_cast<std::uint64_t>(component.end_box - component.first_box);
}

// Cuts what is left of the component where no box spans two slots. False if a piece is hopeless.
bool CanonicalSearch::split(const Component& component, int32_t index) {
  const size_t first_child = children_.size();
  int32_t alive_until = -1;
  for (int32_t i = component.first_box; i < component.end_box; ++i) {
    const int32_t other = pool_[static_cast<size_t>(i)];
    if (other == index) continue;
    const auto end = static_cast<int32_t>(pool_.size());
    if (box(other).first_slot >= alive_until) {
      children_.push_back({.first_box = end,
                           .first_slot = box(other).first_slot,
                           .level = offset(index),
                           .last_rank = rank(index)});
    }
    pool_.push_back(other);
    alive_until = std::max(alive_until, box(other).end_slot);
    children_.back().end_box = end + 1;
    children_.back().end_slot = alive_until;
  }
  for (size_t child = first_child; child < children_.size(); ++child) {
    if (!analyse(children_[child])) return false;
  }
  // What is likely to fail goes first.
  std::sort(children_.begin() + static_cast<std::ptrdiff_t>(first_child), children_.end(),
            [](const Component& a, const Component& b) { return a.slack < b.slack; });
  return true;
}

}  // namespace trainscope::memplan
