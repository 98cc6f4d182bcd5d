// FLOPs a byte against FLOP/s of what ran, under the roofs of the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/op_class.h"
#include "engine/machine/machine.h"
#include "gui/views/axis.h"
#include "gui/views/kernel_rows.h"
#include "profiler/analysis/roof.h"

namespace trainscope::gui {

struct RooflinePoint {
  std::size_t row = 0;  // of the table
  std::string name = {};
  std::uint32_t call = kNoRow;         // the first that has the name
  OpClass op_class = OpClass::kOther;  // of that call's op
  double intensity = 0.0;              // FLOPs a byte
  double gflops = 0.0;                 // a second
  double share = 0.0;                  // of the step's time
  double roof = 0.0;                   // share of it that is reached; 0: not known
};

using profiler::Roof;

// Of one run.
struct Roofline {
  std::vector<RooflinePoint> points = {};  // rows with FLOPs and bytes, in the table's order
  std::vector<std::size_t> by_share = {};  // positions in `points`, those of most time first
  std::unordered_map<std::string, std::size_t> place = {};  // in `points`, by name
  std::vector<Roof> roofs = {};  // none where nobody measured the machine

  std::optional<std::size_t> point_named(const std::string& name) const;
};

// Rows by what the plan's calls are grouped by. Roofs are those of the threads that the plan ran
// with.
Roofline roofline_of(const KernelRows& rows, profiler::GroupBy by, const PlanView& plan,
                     const Machine* machine);

// Around everything of one or of two runs.
struct RooflineAxes {
  PlotAxis intensity = {};
  PlotAxis gflops = {};
};
RooflineAxes axes_around(const Roofline& own, const Roofline& beside);

}  // namespace trainscope::gui
