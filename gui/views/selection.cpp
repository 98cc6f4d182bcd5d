// A list of selections with a position in it, as browsers have one of pages.
#include "gui/views/selection.h"

#include <utility>

namespace trainscope::gui {

bool SelectionHistory::select(Selection selection) {
  if (selection == now()) return false;
  entries_.resize(at_ + 1);
  entries_.push_back(std::move(selection));
  if (entries_.size() > kMostSelections) entries_.erase(entries_.begin());
  at_ = entries_.size() - 1;
  return true;
}

bool SelectionHistory::go_back() {
  if (!can_go_back()) return false;
  --at_;
  return true;
}

bool SelectionHistory::go_forward() {
  if (!can_go_forward()) return false;
  ++at_;
  return true;
}

void SelectionHistory::clear() {
  entries_ = {Selection{}};
  at_ = 0;
}

}  // namespace trainscope::gui
