// Numbers that were drawn, held against what command lines print.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/core/json.h"
#include "gui/workbench/panel.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {

// What command lines print with --json; each is run once.
class Twins {
 public:
  const Json& answer(const std::string& line);

 private:
  std::map<std::string, Json> answers_;
};

// How many numbers were paired: every one that has been drawn below the path.
int check_numbers(WindowDriver& window, const Panel& panel, Twins& twins,
                  std::string_view below = "");

// The string of a number is the number that is printed there, rounded as it is drawn, in its unit.
void check_drawn(const WindowDriver& window, const Item& item, std::string_view pointer,
                 double printed);

// No text has a number with a unit, which would escape from being paired, but where that is listed.
void check_texts(const WindowDriver& window);

}  // namespace trainscope::gui::test
