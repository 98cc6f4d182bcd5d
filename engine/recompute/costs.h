// Seconds of each node of a step: from a model of the machine, or measured and read from a file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/machine/machine.h"

namespace trainscope {

// By NodeId, on all cores of the machine; views take no time. A call takes as long as its
// arithmetic or its traffic to memory, whichever is longer, and some time to start (the roofline
// model of Williams, Waterman, Patterson 2009). Bytes are copied; states that a node updates where
// they are have the machine's rate for that.
std::vector<double> modelled_seconds(const Graph& graph, const Machine& machine);

// A CSV file `value,seconds` with a row for each node of the step without recomputation, named by
// the first value it makes; write_node_seconds writes such files. Fails with kIo, and with
// kBadInput for a file that is none or that lacks a node (it belongs to another step then).
std::vector<double> read_node_seconds(const std::filesystem::path& path, const Graph& graph);
void write_node_seconds(const std::filesystem::path& path, const Graph& graph,
                        std::span<const double> seconds);

}  // namespace trainscope
