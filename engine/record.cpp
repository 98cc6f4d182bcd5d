// Stages as records of a run's folder.
#include "engine/record.h"

#include "engine/core/hash.h"
#include "engine/core/saturating.h"

namespace trainscope {

StageRecord stage_record(const Stage& stage, const Stage* before) {
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
  for (const NearMiss& miss : stage.near_misses) {
    record.near_misses.push_back({.node = miss.node, .reason = miss.reason});
  }
  return record;
}

}  // namespace trainscope
