// What a training step would need on each device of a world that is not here: computed from the
// sizes of shards and a stated model of the devices, never measured (docs/worlds.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"
#include "engine/world/pipeline_schedule.h"
#include "engine/world/timeline.h"

namespace trainscope {

// The step of one device of a stage, placed as it was planned.
struct PlacedStage {
  std::size_t stage = 0;
  const Program& program;  // with the micro-batches in flight; it cannot be run
  const Graph& plain;      // before recomputation
};

// Which plan within the budget is looked for.
enum class WorldAim : std::uint8_t { kQuickest, kAnyPlan };

struct WorldOptions {
  MachineModel machine;
  std::int64_t micro_batches = 1;  // of each step: those that gradients are accumulated over
  // Of one device's arena; none: no limit. What does not fit is recomputed.
  std::optional<std::int64_t> budget_bytes = {};
  LowerOptions lower = {};
  WorldAim aim = WorldAim::kQuickest;
  // Told of every stage, in their order, once all have a plan.
  std::function<void(const PlacedStage&)> on_placed = {};
};

// What one device of a stage of the pipeline (without one: of all) keeps and how long it takes.
struct DeviceShard {
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;     // as the optimizer reads them
  std::int64_t state_bytes = 0;        // of the optimizer
  std::int64_t plain_bytes = 0;        // placed arena without recomputation
  std::int64_t peak_bytes = 0;         // with it
  std::int64_t lower_bound_bytes = 0;  // of the plain arena
  std::int64_t eager_bytes = 0;        // see eager_peak_bytes
  std::int64_t rematerialized_nodes = 0;
  std::int64_t host_bytes = 0;  // placed, of what waits in host memory
  StepTime time;                // of the device alone, without a pipeline's bubble
  StageSeconds micro_batch;     // of one more of them
  double tail_seconds = 0.0;    // of what a step has once: sums of gradients, the update
};

struct WorldPlan {
  Layout layout;
  std::vector<DeviceShard> stages;
  std::size_t fullest = 0;  // the stage with the highest peak
  double step_seconds = 0.0;
  double message_seconds = 0.0;  // of the slowest stage; partly hidden behind kernels
  double exposed_seconds = 0.0;  // those that no kernel of that stage hides
  double bubble_seconds = 0.0;   // in which that stage waits for the others: filling and draining
  double sent_bytes = 0.0;       // by each device of that stage

  const DeviceShard& device() const { return stages[fullest]; }
  std::int64_t eager_bytes() const;           // of the stage where PyTorch would hold most
  std::int64_t rematerialized_nodes() const;  // of all stages
  // In which no kernel of the slowest stage runs.
  double waiting_seconds() const { return exposed_seconds + bubble_seconds; }
};

// `step` is the whole step as one device would run it, lowered or placed. Fails with kUsage for a
// layout that the graph cannot have, with NoPlanFits when no plan is within the budget, naming the
// op that needs most and the least budget with a plan of every stage.
WorldPlan plan_world(const Program& step, const OpTable& ops, const WorldOptions& options);

}  // namespace trainscope
