// FLOPs a byte against FLOP/s of what ran, under the roofs of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/machine/machine.h"
#include "gui/views/axis.h"
#include "gui/views/kernel_rows.h"

namespace trainscope::gui {

struct RooflinePoint {
  std::size_t row = 0;  // of the table
  std::string name = {};
  double intensity = 0.0;  // FLOPs a byte
  double gflops = 0.0;     // a second
  double share = 0.0;      // of the step's time
  double roof = 0.0;       // share of it that is reached; 0: not known
};

// A roof: bandwidth of a level of memory, or of arithmetic.
struct Roof {
  std::string name = {};
  double gbs = 0.0;     // 10^9 bytes a second; 0: of arithmetic
  double gflops = 0.0;  // where it ends, or its height
};

struct Roofline {
  std::vector<RooflinePoint> points = {};  // rows with FLOPs and bytes, those of most time first
  std::vector<Roof> roofs = {};            // none where nobody measured the machine
  PlotAxis intensity = {};
  PlotAxis gflops = {};
};

// `threads`: that the plan ran with.
Roofline roofline_of(const KernelRows& rows, const Machine* machine, std::uint32_t threads);

}  // namespace trainscope::gui
