// A graph with one node that runs a body, as often as an input says.
#pragma once

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope::test {

// The standard rows, and TestLoop: (x [n], sum [n], trips) -> the same after each trip's x is x / 2
// and sum is sum + x, of the x before.
const OpTable& looping_ops();

// y = -(sum of x / 2^i), in one node for all trips; inputs x [300], zero [300], trips.
Graph looping_graph();

}  // namespace trainscope::test
