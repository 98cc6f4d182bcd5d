// The record of one pass: what the graph was afterwards and what the pass cost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/ir/rewrite_log.h"

namespace trainscope {

// What a pass nearly rewrote, and why it did not.
struct NearMiss {
  std::vector<std::string> nodes;  // that it had matched till then, the one it stands at first
  std::string reason;
};

struct Stage {
  std::string name;   // of the pass; "imported" for the first
  std::string label;  // "03-simplify": unique in its run, also the file name
  Graph graph;        // what is equal in other stages is shared with them; see KeepGraphs
  bool changed = false;
  double milliseconds = 0.0;
  std::int64_t nodes = 0;
  Cost cost;  // sum over all nodes
  std::uint64_t hash = 0;
  std::map<std::string, std::int64_t> counters;
  std::vector<NearMiss> near_misses;
  // What became of the nodes and values of the stage before; with KeepGraphs::kLast empty.
  RewriteLog rewrites;
};

using Stages = std::vector<Stage>;

}  // namespace trainscope
