// Which part of what makes a program of a graph is to blame for a call that computes something
// else: an order, recomputation, batch tiles, threads, or the device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/bisect/program/program_check.h"
#include "engine/compile.h"

namespace trainscope {

// The step that these options make; all stages keep their graphs.
using CompileStep = std::function<std::unique_ptr<Compiled>(const CompileOptions&)>;

struct ProgramBisect {
  ProgramCheck check = {};              // of the program as it is compiled
  std::vector<std::string> parts = {};  // that it has: "order", "recompute", "threads"
  // The first part without which there is no fault; empty: there is one without each of them too,
  // or none at all.
  std::string to_blame = {};
};

// Checks the program, and where it has a fault those with one part less. Inputs as of
// check_program().
ProgramBisect bisect_program(const CompileStep& compile, const CompileOptions& options,
                             const std::map<std::string, Tensor>& inputs);

struct DeviceCheck {
  std::string device;
  ProgramCheck check;
};

// The step on each of these devices in turn, held against the reference kernels of this machine's
// processor. Throws what compiling for one of them throws, with the device's name.
std::vector<DeviceCheck> check_devices(const CompileStep& compile, const CompileOptions& options,
                                       const std::vector<DeviceHandle>& devices,
                                       const std::map<std::string, Tensor>& inputs);

// The graph that program stages made a program of: of the last stage before them.
const Graph& graph_before_program_stages(const Stages& stages);

}  // namespace trainscope
