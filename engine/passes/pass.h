// A pass: a named function from graph to graph. One file and one line in engine/passes/passes.def
// each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/progress.h"
#include "engine/ir/builder.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/passes/stage.h"
#include "engine/passes/training_options.h"

namespace trainscope {

// What a pass may look at besides the graph.
struct PassContext {
  const OpTable& ops;
  const Evaluate* evaluate = nullptr;  // computes a node whose inputs are known; may be null
  const TrainingOptions& options;
  std::string_view pass;                              // its own name, for provenance
  std::map<std::string, std::int64_t> counters = {};  // shown in the stage record
  std::vector<NearMiss> near_misses = {};             // ... by `inspect --explain`
  Watch watch = {};               // asked to stop, the manager begins no other pass
  const Graph* around = nullptr;  // of a pass that runs in a body: the model's graph; else null

  void count(std::string_view what, std::int64_t n = 1) { counters[std::string(what)] += n; }
  void near_miss(const Node& node, std::string reason) {
    near_misses.push_back({.nodes = {node.name}, .reason = std::move(reason)});
  }
  // Of a pattern: `matched` are its nodes as far as the pass has found them, `node` among them or
  // not.
  void near_miss(const Graph& graph, NodeId node, std::span<const NodeId> matched,
                 std::string reason);
  // Whether `differentiate` has been at the model's graph, and whether it comes behind. `graph` is
  // the one that the pass runs on: that graph, or a body in it.
  bool has_gradients(const Graph& graph) const;
  bool awaits_gradients(const Graph& graph) const;
};

// `run` returns whether it changed the graph; a second run right after must return false.
// Everything else (time, deltas, snapshot, verify, hash check, error context) is the manager's.
struct Pass {
  std::string_view name;
  std::string_view formerly = {};  // the name that it had before; empty: none
  std::string_view doc;
  bool (*run)(Graph&, PassContext&);
  bool in_bodies = false;  // runs in the bodies of nodes too, each a graph of its own
};

}  // namespace trainscope
