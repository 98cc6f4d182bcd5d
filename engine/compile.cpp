// Read this first: model -> graph -> passes -> program. Each arrow is one function.
#include "engine/compile.h"

#include <malloc.h>

#include <array>
#include <chrono>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/onnx/import_log.h"
#include "engine/onnx/parameters.h"
#include "engine/ops/standard_ops.h"
#include "engine/recompute/costs.h"

namespace trainscope {

// One for each pass, in the file of its name.
#define PASS(name) Pass name##_pass();
#include "engine/passes.def"
#undef PASS

namespace {

// Why the program stages change what they change, for rewrite logs.
constexpr const char* kOrderDoc = "Run nodes in an order of lower memory.";
constexpr const char* kRecomputeDoc =
    "Run nodes a second time, later, so that their results need not stay in memory.";

DeviceHandle device_of(const CompileOptions& options) {
  return options.device ? options.device : cpu_device();
}

void refuse_budget_alone(const CompileOptions& options) {
  if (!options.recompute.budget_bytes || !options.passes.leaves_out(kRecomputeStage)) return;
  throw Error(ErrorCode::kUsage, "without the stage recompute no memory budget can be kept")
      .hint("leave out --disable recompute, or --memory-budget");
}

// The step in an order of lower memory, if there is one, as a stage of its own.
void add_order(Compiled& compiled, const CompileOptions& options) {
  options.watch.report({.work = "order"});
  const auto start = std::chrono::steady_clock::now();
  std::optional<Graph> ordered = ordered_for_memory(compiled.program, options.lower);
  const std::int64_t given_bytes = compiled.program.arena().bytes;
  const bool changed = ordered.has_value();
  const std::size_t index = compiled.stages.size();
  Stage stage = changed ? stage_of(kOrderStage, *std::move(ordered), index)
                        : unchanged_stage(kOrderStage, compiled.stages.back(), index);
  stage.changed = changed;
  if (changed) {
    log_rewrites(stage, compiled.stages.back(),
                 {.name = std::string(kOrderStage), .reason = kOrderDoc});
    compiled.program = {};  // its memory goes to the next one
    compiled.program =
        lower(graph_for_next(stage, options.passes.keep), device_of(options), options.lower);
    stage.counters["bytes saved"] = given_bytes - compiled.program.arena().bytes;
  }
  stage.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  compiled.stages.push_back(std::move(stage));
}

// Plans on the step as it stands, then makes the chosen rematerializations its last stage.
void add_recompute(Compiled& compiled, const CompileOptions& options) {
  options.watch.report({.work = "recompute"});
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
  Stage stage = stage_of(kRecomputeStage, std::move(plan.graph.graph), compiled.stages.size());
  stage.changed = !plan.rematerializations.empty();
  log_rewrites(stage, compiled.stages.back(),
               {.name = std::string(kRecomputeStage), .reason = kRecomputeDoc});
  stage.counters["repeated"] = compiled.recompute->repeats;
  stage.counters["offloaded_bytes"] = plan.host_bytes;
  compiled.stages.push_back(std::move(stage));
  compiled.program = {};  // its memory goes to the next one
  compiled.program = lower(graph_for_next(compiled.stages.back(), options.passes.keep),
                           device_of(options), options.lower);
  CHECK_INVARIANT(compiled.program.arena().bytes == plan.arena_bytes);
}

}  // namespace

const OpTable& op_table() {
  static const OpTable table = standard_ops();
  return table;
}

std::span<const Pass> default_passes() {
#define PASS(name) name##_pass(),
  static const std::array passes{
#include "engine/passes.def"
  };
#undef PASS
  return passes;
}

Stages build_stages(const OnnxModel& model, const CompileOptions& options) {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels(), {.limit = kKnownValuesLimit});
  ImportOptions import_options = options.import;
  import_options.evaluate = &evaluate;
  Graph graph = to_graph(model, op_table(), import_options);
  if (options.training.mode == GraphMode::kTrain) require_trainable(model, options.import);
  PassContext context{.ops = op_table(),
                      .evaluate = &evaluate,
                      .options = options.training,
                      .pass = {},
                      .counters = {},
                      .watch = options.watch};
  Stages stages = run_passes(std::move(graph), default_passes(), context, options.passes);
  if (options.passes.keep == KeepGraphs::kAll) {
    stages.front().rewrites = import_log(model, stages.front().graph);
  }
  return stages;
}

std::unique_ptr<Compiled> compile(const OnnxModel& model, const CompileOptions& given) {
  refuse_budget_alone(given);
  CompileOptions options = given;
  options.lower.watch = given.watch;
  auto compiled = std::make_unique<Compiled>();
  compiled->stages = build_stages(model, options);
  options.watch.report({.work = "placement"});
  compiled->program = lower(graph_for_next(compiled->stages.back(), options.passes.keep),
                            device_of(options), options.lower);
  const auto wanted = [&](std::string_view stage) { return !options.passes.leaves_out(stage); };
  if (options.order == OpOrder::kMemory && wanted(kOrderStage)) add_order(*compiled, options);
  if (options.recompute.mode != RecomputeMode::kNone && wanted(kRecomputeStage)) {
    add_recompute(*compiled, options);
  } else if (options.batch_tiles && wanted(kBatchTilesStage) &&
             options.lower.same_bits == SameBits::kSameThreads) {
    BatchTileOptions tiles = *options.batch_tiles;
    tiles.kernels = options.lower.kernels;
    tiles.machine = options.machine;
    add_batch_tiles(compiled->program, tiles);
  }
  return compiled;
}

std::vector<double> step_seconds(const Program& plain, const std::filesystem::path& costs,
                                 const Machine& machine) {
  return costs.empty() ? modelled_seconds(plain.graph, machine)
                       : read_node_seconds(costs, plain.graph);
}

void release_initial(Compiled& compiled) {
  for (Stage& stage : compiled.stages) stage.graph.release_initial();
  compiled.program.graph.release_initial();
  malloc_trim(0);  // glibc keeps freed blocks of up to 32 MiB: hundreds of MiB here
}

}  // namespace trainscope
