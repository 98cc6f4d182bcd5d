// What stands beside a roof of the Roofline panel.
#pragma once

#include <string>

#include "gui/ui/ui.h"

namespace trainscope::gui {

// Its name, its rate, and where two machines are shown the run whose it is.
struct RoofName {
  std::string name = {};
  Quantity rate = {};
  std::string fact = {};  // where the rate is printed
  std::string of_run = {};

  float width(const Ui& ui) const;
  void draw(Ui& ui, Rect rest) const;
};

}  // namespace trainscope::gui
