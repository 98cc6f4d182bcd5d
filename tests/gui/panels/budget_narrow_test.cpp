// The Budget panel in a column: facts and curve below the plane, where the height allows them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/gui/panels/budget_window.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {
namespace {

TEST_SUITE_BEGIN("gui");

TEST_CASE("budget panel: in a narrow column facts and curve are below the plane, which has most") {
  BudgetWindow panel(text_run().folder());
  panel.click("level/1");
  const double peak = panel.number("facts/peak");
  const auto show = [&](Extent size) {
    panel.window.resize(size);
    panel.settle();
    check_looks(panel);
  };
  for (const Extent size : {Extent{560.0F, 520.0F}, {500.0F, 520.0F}, {420.0F, 720.0F}}) {
    INFO(size.width, "x", size.height);
    show(size);
    CHECK(panel.number("facts/peak") == peak);
    CHECK(panel.number("facts/overhead") > 0.0);
    CHECK(panel.find("facts/certificate") != nullptr);
    const Rect plane = panel.item("plane").rect;
    const Rect curve = panel.item("curve").rect;
    CHECK(curve.y >= plane.bottom());
    CHECK(panel.item("facts/peak").rect.y >= plane.bottom());
    CHECK(plane.height > curve.height);
    CHECK(plane.height > 0.4F * size.height);
  }
  show({560.0F, 420.0F});  // too low for more than the plane
  CHECK(panel.find("curve") == nullptr);
  CHECK(panel.find("facts/peak") == nullptr);
  CHECK(panel.find("plane") != nullptr);
  show({1280.0F, 720.0F});
  CHECK(panel.item("curve").rect.x >= panel.item("plane").rect.right());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui::test
