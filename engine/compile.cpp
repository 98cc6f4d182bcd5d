// Read this first: model -> graph -> passes -> program. Each arrow is one function.
#include "engine/compile.h"

#include <fmt/format.h>

#include <array>

#include "engine/core/error.h"
#include "engine/core/system/freed_memory.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/onnx/import_log.h"
#include "engine/onnx/parameters.h"
#include "engine/ops/standard_ops.h"
#include "engine/program_stages.h"
#include "engine/recompute/costs.h"

namespace trainscope {

// One for each pass, in the file of its name.
#define PASS(name) Pass name##_pass();
#define PROGRAM_STAGE(name)
#include "engine/passes/passes.def"
#undef PASS
#undef PROGRAM_STAGE

namespace {

DeviceHandle device_of(const CompileOptions& options) {
  return options.device ? options.device : cpu_device();
}

void refuse_budget_alone(const CompileOptions& options) {
  if (!options.recompute.budget_bytes) return;
  const bool stops_before = options.passes.stop_after == kProgramStages.front();
  if (!stops_before && !options.passes.leaves_out(kRematerializedBy)) return;
  throw Error(ErrorCode::kUsage, "without the stage recompute no memory budget can be kept")
      .hint(fmt::format("leave out {}, or --memory-budget",
                        stops_before ? "--stop-after order" : "--disable recompute"));
}

void refuse_tf32_elsewhere(const Device& device) {
  if (computes_tf32(device.kernels())) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} has no matmuls in TF32", device.facts().name))
      .hint("--precision tf32 is for --device cuda");
}

// As all that is made with them takes them.
CompileOptions checked(CompileOptions options) {
  refuse_budget_alone(options);
  options.lower.watch = options.watch;
  options.lower.tf32 = options.lower.tf32 || options.training.precision == StepPrecision::kTf32;
  if (options.lower.tf32) refuse_tf32_elsewhere(*device_of(options));
  return options;
}

}  // namespace

const OpTable& op_table() { return shared_ops(); }

std::span<const Pass> default_passes() {
#define PASS(name) name##_pass(),
#define PROGRAM_STAGE(name)
  static const std::array passes{
#include "engine/passes/passes.def"
  };
#undef PASS
#undef PROGRAM_STAGE
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
  const CompileOptions options = checked(given);
  auto compiled = std::make_unique<Compiled>();
  compiled->stages = build_stages(model, options);
  options.watch.report({.work = "placement"});
  compiled->program = lower(graph_for_next(compiled->stages.back(), options.passes.keep),
                            device_of(options), options.lower);
  run_program_stages(*compiled, options);
  return compiled;
}

std::unique_ptr<Compiled> replan(const Compiled& plain, const CompileOptions& given) {
  CHECK_INVARIANT(!plain.recompute && plain.program.sections.empty());
  CompileOptions options = checked(given);
  options.order = OpOrder::kGiven;  // that of `plain`
  auto compiled = std::make_unique<Compiled>(plain);
  run_program_stages(*compiled, options);
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
  give_back_freed_memory();  // hundreds of MiB
}

}  // namespace trainscope
