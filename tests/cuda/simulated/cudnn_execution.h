// Runs the op graph of a simulated cuDNN on memory.
#pragma once

#include <cstdint>
#include <map>

#include "tests/cuda/simulated/cudnn_graph.h"

namespace trainscope::simulated {

// What an engine does that not every caller may want; its notes say so.
enum class Flaw : std::uint8_t {
  kNone,       // products and sums in double, rounded to the type of each tensor
  kTf32,       // factors are rounded to 10 bits behind the point
  kLowSums,    // sums are rounded to two bytes at every addition
  kUnordered,  // the last digits of sums differ from run to run
};

// Addresses by uid: of the device's memory, or of a value of the host's, which was read before.
struct Operands {
  std::map<std::int64_t, void*> memory;
  std::map<std::int64_t, double> values;
};

void execute(const OpGraph& graph, const Operands& operands, Flaw flaw);

}  // namespace trainscope::simulated
