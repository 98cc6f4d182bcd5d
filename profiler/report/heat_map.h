// Errors as a picture: a row is a value, a column a step, the colour the logarithm of the error.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainscope::profiler {

struct HeatColumn {
  std::string group;  // what stands above columns beside each other
  std::string name;
};

struct HeatCell {
  std::size_t row = 0;
  std::size_t column = 0;
  double error = 0.0;      // relative; infinite where there is none to be had
  bool is_beyond = false;  // its limit: it has a frame
  std::string title = {};  // what it says under the pointer
};

struct HeatMap {
  std::string title = {};
  std::vector<std::string> rows = {};  // names
  std::vector<HeatColumn> columns = {};
  std::vector<HeatCell> cells = {};
};

// Colours from kLeastError to 1; what is below it, and no error at all, has the least one's. Names
// are text.
std::string heat_map(const HeatMap& map);
inline constexpr double kLeastError = 1e-9;

// "#2c3e78".
std::string heat_color(double error);

}  // namespace trainscope::profiler
