// How a step's examples can be split, and what each split comes to.
#include "cli/print/split_table.h"

#include <fmt/format.h>

#include "engine/core/byte_count.h"

namespace trainscope {
namespace {

Json split_record(const BatchSplit& split, const SplitPlan& plan) {
  return Json::object({{"batch", split.batch},
                       {"accumulate", split.micro_batches},
                       {"arena_bytes", plan.arena_bytes},
                       {"seconds", plan.seconds},
                       {"repeats", plan.rematerialized}});
}

std::string split_row(const PlannedSplit& planned) {
  const BatchSplit& split = planned.split;
  if (!planned.plan) {
    return fmt::format("{:>8} {:>12} {:>16}\n", split.batch, split.micro_batches, "too much");
  }
  const SplitPlan& plan = *planned.plan;
  return fmt::format("{:>8} {:>12} {:>16} {:>12} {:>10} {:>12.3f}\n", split.batch,
                     split.micro_batches, plan.arena_bytes, bytes_text(plan.arena_bytes),
                     plan.rematerialized, 1e3 * plan.seconds);
}

}  // namespace

Outcome splits_outcome(const PlannedSplits& splits) {
  const PlannedSplit& quickest = splits.quickest;
  Outcome outcome{.facts = Json::object({{"examples", quickest.split.examples()}})};
  outcome.text = fmt::format("{:>8} {:>12} {:>16} {:>12} {:>10} {:>12}\n", "--batch",
                             "--accumulate", "arena bytes", "", "recomputed", "ms a step");
  Json rows = Json::array();
  for (const PlannedSplit& each : splits.all) {
    outcome.text += split_row(each);
    if (each.plan) rows.push_back(split_record(each.split, *each.plan));
  }
  outcome.text += fmt::format("quickest: --batch {} --accumulate {}\n", quickest.split.batch,
                              quickest.split.micro_batches);
  outcome.facts.set("splits", std::move(rows));
  outcome.facts.set("quickest", split_record(quickest.split, *quickest.plan));
  return outcome;
}

}  // namespace trainscope
