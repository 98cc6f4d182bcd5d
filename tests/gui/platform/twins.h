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

}  // namespace trainscope::gui::test
