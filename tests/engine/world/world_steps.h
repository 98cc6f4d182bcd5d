// Small training steps for the tests of worlds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/compile.h"
#include "engine/models/models.h"
#include "engine/world/world_plan.h"
#include "tests/support/kept_plans.h"

namespace trainscope::test {

struct StepSizes {
  std::int64_t batch = 2;
  std::int64_t sequence = 0;  // 0: the model has none
  std::int64_t micro_batches = 1;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool sparse_rows = false;  // also where it changes the numbers
};

inline std::unique_ptr<Compiled> compiled_step(std::string_view name,
                                               const ModelArguments& arguments,
                                               const StepSizes& sizes = {}) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  const OnnxModel model = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
  CompileOptions options;
  options.import.dims = {{"batch", sizes.batch}};
  if (sizes.sequence > 0) options.import.dims.emplace("sequence", sizes.sequence);
  options.training.optimizer.kind = sizes.optimizer;
  options.training.micro_batches = sizes.micro_batches;
  options.training.optimizer.sparse_embeddings = sizes.sparse_rows;
  if (!sizes.sparse_rows) options.passes.disabled = {"sparse_rows"};
  return compile(model, options);
}

// 16 -> 64 -> 32 -> 8: 3,400 parameters.
inline std::unique_ptr<Compiled> mlp_step(const StepSizes& sizes = {}) {
  return compiled_step("mlp", {{"dims", Ints{16, 64, 32, 8}}}, sizes);
}

// Four heads; every size a multiple of 8.
inline std::unique_ptr<Compiled> gpt_step(std::int64_t layers = 2, StepSizes sizes = {}) {
  if (sizes.sequence == 0) sizes.sequence = 8;
  return compiled_step("gpt2",
                       {{"layers", layers},
                        {"heads", std::int64_t{4}},
                        {"embedding", std::int64_t{32}},
                        {"vocab", std::int64_t{64}},
                        {"context", std::int64_t{16}}},
                       sizes);
}

inline WorldOptions world_of(const Layout& layout, std::string_view device = "a100-40") {
  WorldOptions options;
  options.machine.device = &find_world_device(device);
  options.machine.kernels = machine_of(*options.machine.device, MatmulPrecision::kF32);
  options.machine.layout = layout;
  return options;
}

// Each device's plan is kept for the checker.
inline WorldPlan plan_kept(const Compiled& step, WorldOptions options) {
  options.on_placed = [](const PlacedStage& placed) {
    Stages stages(2);
    stages[0].name = "sharded";
    stages[0].graph = placed.plain;
    stages[1].name = "recompute";
    keep_plan(placed.program, stages);
  };
  return plan_world(step.program, op_table(), options);
}

inline WorldPlan planned(const Compiled& step, const Layout& layout) {
  return plan_kept(step, world_of(layout));
}

}  // namespace trainscope::test
