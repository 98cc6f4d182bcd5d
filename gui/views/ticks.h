// Round numbers along an axis.
#pragma once

#include <string>
#include <vector>

namespace trainscope::gui {

// Multiples of 1, 2 or 5 times a power of ten within [low, high], at most so many.
std::vector<double> round_ticks(double low, double high, int most);
// Of bytes: multiples of a power of two.
std::vector<double> byte_ticks(double low, double high, int most);
// A number of nanoseconds beside an axis whose ticks are `step` apart: "12.5 ms".
std::string tick_time(double ns, double step);

}  // namespace trainscope::gui
