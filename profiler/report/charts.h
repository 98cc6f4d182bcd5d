// Charts as inline SVG: lines over steps, rooflines, buffers in the memory-time plane. Each has a
// title for who cannot see it, colours of the page's style (classes c0 to c8), and no script.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/bundle/plan_record.h"

namespace trainscope::profiler {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // by x; a y that is not finite is a gap
  int color = 0;
};

struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Line> lines = {};
  bool from_zero = false;  // the y axis begins at 0
  // The axis ends where most points are: those far beyond stand at its end, and are counted.
  bool cuts_outliers = false;
};

// Of more points than there are pixels each pixel keeps its least and greatest.
std::string line_chart(const LineChart& chart);

// FLOPs a byte against FLOP/s, both logarithmic.
struct RooflinePoint {
  std::string name;
  double intensity = 0.0;  // FLOPs a byte
  double flops = 0.0;      // a second
  double share = 0.0;      // of the step's time: how large it is drawn
};
struct RooflineChart {
  std::string title = {};
  double peak_flops = 0.0;                                  // a second
  std::vector<std::pair<std::string, double>> levels = {};  // bytes a second, by name of the level
  std::vector<RooflinePoint> points = {};
};
std::string roofline_chart(const RooflineChart& chart);

// Every buffer of the device's arena: x is the time (the calls in order), y the offset, the colour
// what it holds. Of very many buffers the largest areas are drawn, and how many are not is said.
std::string memory_chart(const PlanView& plan);
inline constexpr std::size_t kMostDrawnBuffers = 2000;

}  // namespace trainscope::profiler
