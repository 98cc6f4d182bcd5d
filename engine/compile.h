// The engine's flow in one place: model -> stages -> program.
#pragma once

#include <memory>

#include "engine/onnx/import.h"
#include "engine/passes/pass_manager.h"
#include "engine/passes/training_options.h"
#include "engine/plan/lower.h"

namespace trainscope {

struct CompileOptions {
  ImportOptions import = {};      // `evaluate` is filled in here
  TrainingOptions training = {};  // what to build around the forward graph
  PassOptions passes = {};
  LowerOptions lower = {};
};

struct Compiled {
  Stages stages;
  Program program;  // of the last stage's graph
};

// The op rows, made once.
const OpTable& op_table();
// The passes of passes.def in order.
std::span<const Pass> default_passes();

// Import and all passes. Fails with kBadInput (one report of everything missing) or kUsage.
Stages build_stages(const OnnxModel& model, const CompileOptions& options);
// ... and kernels and memory plan. The result does not move: executors point into it.
std::unique_ptr<Compiled> compile(const OnnxModel& model, const CompileOptions& options);
// Forgets the initial elements of parameters and states, in every stage: an executor that has
// loaded them keeps them in its arena. The model they came from may hold them still.
void release_initial(Compiled& compiled);

}  // namespace trainscope
