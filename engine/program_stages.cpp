// An order of lower memory, rematerialization, batch tiles.
#include "engine/program_stages.h"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// Behind the others: of a new graph, or none.
Stage& add_stage(Compiled& compiled, const ProgramStage& row, std::optional<Graph> graph) {
  const std::size_t index = compiled.stages.size();
  const Stage& before = compiled.stages.back();
  Stage stage = graph ? stage_of(row.name, *std::move(graph), index)
                      : unchanged_stage(row.name, before, index);
  stage.changed = stage.hash != before.hash;
  log_rewrites(stage, before, {.name = std::string(row.name), .reason = std::string(row.doc)});
  return compiled.stages.emplace_back(std::move(stage));
}

// The program of the last stage's graph.
void lower_again(Compiled& compiled, const CompileOptions& options) {
  DeviceHandle device = compiled.program.device;
  compiled.program = {};  // its memory goes to the next one
  compiled.program = lower(graph_for_next(compiled.stages.back(), options.passes.keep),
                           std::move(device), options.lower);
}

void run_order(const ProgramStage& row, Compiled& compiled, const CompileOptions& options) {
  std::optional<Graph> ordered = ordered_for_memory(compiled.program, options.lower);
  const std::int64_t given_bytes = compiled.program.arena().bytes;
  const bool changed = ordered.has_value();
  Stage& stage = add_stage(compiled, row, std::move(ordered));
  if (!changed) return;
  lower_again(compiled, options);
  stage.counters["bytes saved"] = given_bytes - compiled.program.arena().bytes;
}

// Plans on the step as it stands, then makes the chosen rematerializations a stage.
void run_recompute(const ProgramStage& row, Compiled& compiled, const CompileOptions& options) {
  const Program& plain = compiled.program;
  RecomputePlan plan = plan_recompute(plain, step_seconds(plain, options.costs, options.machine),
                                      op_table(), options.recompute, options.lower);
  compiled.recompute = {.plain_bytes = plan.plain_bytes,
                        .plain_seconds = plan.plain_seconds,
                        .seconds = plan.seconds,
                        .bound_seconds = plan.bound_seconds,
                        .bound_bytes = plan.bound_bytes,
                        .repeats = plan.rematerialized_nodes(),
                        .offloaded_bytes = plan.host_bytes,
                        .budget_bytes = options.recompute.budget_bytes};
  Stage& stage = add_stage(compiled, row, std::move(plan.graph.graph));
  stage.counters["repeated"] = compiled.recompute->repeats;
  stage.counters["offloaded_bytes"] = plan.host_bytes;
  lower_again(compiled, options);
  CHECK_INVARIANT(compiled.program.arena().bytes == plan.arena_bytes);
}

void run_batch_tiles(const ProgramStage& row, Compiled& compiled, const CompileOptions& options) {
  BatchTileOptions tiles = *options.batch_tiles;
  tiles.kernels = options.lower.kernels;
  tiles.machine = options.machine;
  add_batch_tiles(compiled.program, tiles);
  Stage& stage = add_stage(compiled, row, std::nullopt);
  const auto sections = std::ssize(compiled.program.sections);
  if (sections > 0) stage.counters["tiled sections"] = sections;
}

ProgramStage order_stage() {
  return {
      .name = "order",
      .when = "unless `--op-order given`",
      .doc = "Put the nodes of each phase into an order with a lower arena, if one is found.",
      .page = "memory.md",
      .applies = [](const Compiled&,
                    const CompileOptions& options) { return options.order == OpOrder::kMemory; },
      .run = run_order};
}

ProgramStage recompute_stage() {
  return {.name = kRematerializedBy,
          .when = "with `--recompute`, `--memory-budget` or `--max-overhead`",
          .doc =
              "Rematerialize nodes of the forward phase where backward needs their results, or, "
              "with `--offload`, let these wait in host memory.",
          .page = "recompute.md",
          .applies =
              [](const Compiled&, const CompileOptions& options) {
                return options.recompute.mode != RecomputeMode::kNone;
              },
          .run = run_recompute};
}

// Not of a step that trades memory: tiles want more of it.
ProgramStage batch_tiles_stage() {
  return {.name = "batch_tiles",
          .when = "with `--batch-tiles auto`, several threads and no recomputation",
          .doc = "Run several short ops in a row on a slice of the batch, on each thread its own.",
          .page = "memory.md",
          .applies =
              [](const Compiled& compiled, const CompileOptions& options) {
                return options.batch_tiles.has_value() && !compiled.recompute &&
                       compiled.program.threads > 1 &&
                       options.lower.same_bits == SameBits::kSameThreads;
              },
          .run = run_batch_tiles};
}

}  // namespace

std::span<const ProgramStage> program_stages() {
#define PASS(name)
#define PROGRAM_STAGE(name) name##_stage(),
  static const std::array stages{
#include "engine/passes/passes.def"
  };
#undef PASS
#undef PROGRAM_STAGE
  return stages;
}

void run_program_stages(Compiled& compiled, const CompileOptions& options) {
  for (const ProgramStage& row : program_stages()) {
    if (!options.passes.leaves_out(row.name) && row.applies(compiled, options)) {
      options.watch.report({.work = row.name});
      const auto start = std::chrono::steady_clock::now();
      row.run(row, compiled, options);
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - start;
      compiled.stages.back().milliseconds = taken.count();
    }
    if (row.name == options.passes.stop_after) break;
  }
}

}  // namespace trainscope
