// Seconds of each node of a step: from a model of the machine, or measured and read from a file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

// A call takes as long as its arithmetic or its traffic, whichever is longer, and some time to
// start (the roofline model of Williams, Waterman, Patterson 2009).
struct MachineRates {
  double flops_per_second = 0.0;
  double bytes_per_second = 0.0;
  double seconds_per_call = 0.0;
};
// Two cores of a server: what a plan assumes when nobody measured. Only ratios matter for it.
inline constexpr MachineRates kCpuRates = {
    .flops_per_second = 180e9, .bytes_per_second = 20e9, .seconds_per_call = 1e-6};

// By NodeId; views take no time.
std::vector<double> modelled_seconds(const Graph& graph, const MachineRates& rates);

// A CSV file `value,seconds` with a row for each node of the step without recomputation, named by
// the first value it makes; write_node_seconds writes such files. Fails with kIo, and with
// kBadInput for a file that is none or that lacks a node (it belongs to another step then).
std::vector<double> read_node_seconds(const std::filesystem::path& path, const Graph& graph);
void write_node_seconds(const std::filesystem::path& path, const Graph& graph,
                        std::span<const double> seconds);

}  // namespace trainscope
