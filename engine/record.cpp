// Stages as records of a run's folder.
#include "engine/record.h"

#include "engine/core/hash.h"
#include "engine/core/saturating.h"
#include "engine/stage_estimate.h"

namespace trainscope {

StageRecord stage_record(const Stage& stage, const Stage* before, const Machine& machine) {
  const Stage& old = before == nullptr ? stage : *before;
  const auto bytes = [](const Cost& cost) {
    return saturating_add(cost.bytes_read, cost.bytes_written);
  };
  StageRecord record{.name = stage.name,
                     .file = {},
                     .nodes_before = old.nodes,
                     .nodes_after = stage.nodes,
                     .flops_before = old.cost.flops,
                     .flops_after = stage.cost.flops,
                     .bytes_before = bytes(old.cost),
                     .bytes_after = bytes(stage.cost),
                     .milliseconds = stage.milliseconds,
                     .changed = stage.changed,
                     .hash = hash_hex(stage.hash),
                     .counters = stage.counters,
                     .near_misses = {}};
  const bool has_graph = static_cast<std::int64_t>(stage.graph.node_count()) == stage.nodes;
  if (has_graph) {
    const StageEstimate estimate = estimate_stage(stage.graph, machine);
    record.seconds_after = estimate.seconds;
    record.live_bytes_after = estimate.live_bytes;
  }
  for (const NearMiss& miss : stage.near_misses) {
    record.near_misses.push_back({.nodes = miss.nodes, .reason = miss.reason});
  }
  return record;
}

}  // namespace trainscope
