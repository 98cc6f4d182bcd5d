// lower: graph -> program. Chooses kernels, finds lifetimes and shared bytes, places every buffer.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/plan/program.h"
#include "kernels/api/kernel.h"

namespace trainscope {

enum class KernelChoice : std::uint8_t { kFastest, kReference };

// The same bits on every run with as many threads, or with any number of them.
enum class SameBits : std::uint8_t { kSameThreads, kAnyThreads };

struct LowerOptions {
  int threads = 1;
  KernelChoice kernels = KernelChoice::kFastest;
  SameBits same_bits = SameBits::kSameThreads;
  bool in_place = true;              // let outputs take over the bytes of dying inputs
  bool external_parameters = false;  // parameters and states live in another program's arena
  // Time limit of the placement search; without one the plan depends on the graph alone.
  double seconds = std::numeric_limits<double>::infinity();
};

// Fails with kBadInput (every op and dtype without a kernel, with node names) or kOutOfMemory.
Program lower(Graph graph, const KernelTable& kernels, const LowerOptions& options);

// Nodes in order of execution: forward, backward, update. Stable, so still topological: no earlier
// phase reads what a later one makes.
std::vector<NodeId> phase_order(const Graph& graph);

// Values that share bytes, and how long the bytes are needed.
struct Lifetimes {
  struct Buffer {
    std::int64_t first = 0;  // instruction that writes it first
    std::int64_t last = 0;   // last instruction that needs it
    std::size_t bytes = 0;
    bool persistent = false;
    bool external = false;
    std::string name;  // of its first value
  };
  std::vector<Buffer> buffers;
  std::vector<std::int32_t> buffer_of;  // by ValueId; -1: no bytes needed
  std::vector<StateCopy> copies;
};
// order: the nodes to execute, views included; steps are positions among the others (instructions).
Lifetimes find_lifetimes(const Graph& graph, std::span<const NodeId> order,
                         const LowerOptions& options);

// What is to be placed: a buffer for each of the lifetimes, then one for each instruction's
// workspace that is not empty. workspaces: bytes by instruction.
memplan::Problem placement_problem(const Lifetimes& lifetimes,
                                   std::span<const std::int64_t> workspaces);

}  // namespace trainscope
