// What stands beside the ticks of a time axis.
#pragma once

#include <string>

namespace trainscope::gui {

// A number of nanoseconds beside an axis whose ticks are `step` apart: "12.5 ms".
std::string tick_time(double ns, double step);

}  // namespace trainscope::gui
