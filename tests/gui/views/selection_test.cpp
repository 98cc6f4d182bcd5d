// Going back and forward through selections.
#include "gui/views/selection.h"

#include <doctest/doctest.h>

namespace trainscope::gui {
namespace {

TEST_CASE("selection: back and forward walk through what was selected") {
  SelectionHistory history;
  CHECK(!history.go_back());
  CHECK(history.select({.node = 1}));
  CHECK(history.select({.node = 2}));
  CHECK(!history.select({.node = 2}));
  CHECK(history.go_back());
  CHECK(history.now().node == 1);
  CHECK(history.go_forward());
  CHECK(history.now().node == 2);
  CHECK(!history.can_go_forward());
}

TEST_CASE("selection: what was ahead is forgotten when something else is selected") {
  SelectionHistory history;
  history.select({.node = 1});
  history.select({.node = 2});
  history.go_back();
  history.select({.node = 3});
  CHECK(!history.can_go_forward());
  history.go_back();
  CHECK(history.now().node == 1);
}

TEST_CASE("selection: the oldest are forgotten") {
  SelectionHistory history;
  for (std::uint32_t node = 1; node <= 1000; ++node) history.select({.node = node});
  std::size_t steps = 0;
  while (history.go_back()) ++steps;
  CHECK(steps == kMostSelections - 1);
  CHECK(history.now().node == 1000 - kMostSelections + 1);
}

}  // namespace
}  // namespace trainscope::gui
