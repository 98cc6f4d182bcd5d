// The engine's flow in one place: model -> stages -> program.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "engine/core/progress.h"
#include "engine/exec/backends.h"    // IWYU pragma: export
#include "engine/machine/machine.h"  // IWYU pragma: export
#include "engine/onnx/import.h"
#include "engine/passes/pass_manager.h"
#include "engine/passes/training_options.h"
#include "engine/plan/batch_tiles.h"
#include "engine/plan/lower.h"
#include "engine/plan/memory_order.h"
#include "engine/recompute/recompute.h"  // IWYU pragma: export

namespace trainscope {

struct CompileOptions {
  ImportOptions import = {};      // `evaluate` is filled in here
  TrainingOptions training = {};  // what to build around the forward graph
  PassOptions passes = {};
  DeviceHandle device = {};  // that the program is for; null: this machine's processor
  LowerOptions lower = {};
  OpOrder order = OpOrder::kMemory;
  // Tiled sections of short ops (engine/plan/batch_tiles.h): with several threads, if the bits need
  // not be those of any number of them, and where no memory is traded.
  std::optional<BatchTileOptions> batch_tiles = {};
  RecomputeOptions recompute = {};
  std::filesystem::path costs = {};  // measured times of the nodes; empty: as `machine` has them
  Machine machine = default_machine();
  // Learns of passes, order, placement and recompute; once it is asked to stop, Stopped is thrown
  // within some milliseconds, or when the pass under way is done. In place of lower.watch.
  Watch watch = {};
};

// What recomputation was predicted to do.
struct RecomputeSummary {
  std::int64_t plain_bytes = 0;                   // arena without it
  double plain_seconds = 0.0;                     // of a step, by the costs given
  double seconds = 0.0;                           // ... with it
  double bound_seconds = 0.0;                     // see RecomputePlan
  std::int64_t bound_bytes = 0;                   // see RecomputePlan
  std::int64_t repeats = 0;                       // nodes that are there a second time, views too
  std::int64_t offloaded_bytes = 0;               // of the values that wait in host memory
  std::optional<std::int64_t> budget_bytes = {};  // that the arena was to be within
};

struct Compiled {
  Stages stages;    // with KeepGraphs::kLast none has a graph: the last one's is the program's
  Program program;  // of the last stage's graph
  std::optional<RecomputeSummary> recompute;
};

// The op rows, made once; plugins add theirs.
const OpTable& op_table();
// The passes of passes.def in order.
std::span<const Pass> default_passes();

// Import and all passes. Fails with kBadInput (one report of everything missing) or kUsage.
Stages build_stages(const OnnxModel& model, const CompileOptions& options);
// ... and kernels and memory plan; an executor of it has a share of it (make_executor). Both throw
// Stopped when options.watch asks them to stop.
std::unique_ptr<Compiled> compile(const OnnxModel& model, const CompileOptions& options);
// Another plan of a step that was compiled without recomputation and batch tiles: the program that
// compile() would make with these options, without doing again what is the same for all of them,
// the passes and the order. Of `options` recomputation, batch tiles, costs, machine and watch
// count; the others must be those of `plain`, which keeps its stages.
std::unique_ptr<Compiled> replan(const Compiled& plain, const CompileOptions& options);
// The time of each node of a step without recomputation, by NodeId: as the file `costs` has them,
// or, when its name is empty, by the model of the machine.
std::vector<double> step_seconds(const Program& plain, const std::filesystem::path& costs,
                                 const Machine& machine = default_machine());
// Forgets the initial elements of parameters and states, in every stage: an executor that has
// loaded them keeps them in its arena. The model they came from may hold them still.
void release_initial(Compiled& compiled);

}  // namespace trainscope
