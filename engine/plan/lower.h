// lower: graph -> program. Chooses kernels, finds lifetimes and shared bytes, places every buffer.
#pragma once

#include <limits>
#include <vector>

#include "engine/core/progress.h"
#include "engine/ir/graph.h"
#include "engine/plan/kernel_choice.h"  // IWYU pragma: export
#include "engine/plan/program.h"
#include "kernels/api/device.h"

namespace trainscope {

struct LowerOptions {
  int threads = 1;
  KernelChoice kernels = KernelChoice::kFastest;
  SameBits same_bits = SameBits::kSameThreads;
  bool tf32 = false;  // matmuls of f32 round their factors to TF32, where the device has that
  // Outputs take over the bytes of dying inputs; parts lie inside the whole.
  bool in_place = true;
  bool external_parameters = false;  // parameters and states live in another program's arena
  bool keep_inputs = false;          // what inputs hold is there throughout: for a body's trips
  // False: nobody will run the program, and what kernels have prepared for that is not kept.
  bool runs = true;
  // Time limit of the placement search; without one the plan depends on the graph alone.
  double seconds = std::numeric_limits<double>::infinity();
  Watch watch = {};  // asked to stop, everything that plans with these options throws Stopped
};

// Fails with kBadInput (every op and dtype without a kernel, with node names) or kOutOfMemory.
Program lower(Graph graph, DeviceHandle device, const LowerOptions& options);

// Nodes in order of execution: forward, backward, update. Stable, so still topological: no earlier
// phase reads what a later one makes.
std::vector<NodeId> phase_order(const Graph& graph);

}  // namespace trainscope
