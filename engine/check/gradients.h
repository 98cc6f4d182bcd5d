// One forward and backward pass on given tensors: loss, gradients, chosen values and theirs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/check/reference.h"
#include "engine/session.h"

namespace trainscope {

struct GradientsOptions {
  DType float_type = DType::kF32;
  StepPrecision precision = StepPrecision::kF32;
  std::vector<std::string> values;  // names to keep; {"all"}: every float value of the graph
  LowerOptions lower;
  PassOptions passes;
  DeviceHandle device = nullptr;  // null: the CPU
};

struct GradientsResult {
  Tensor loss;
  std::map<std::string, Tensor> gradients;             // by parameter
  std::map<std::string, Tensor> activations;           // by value
  std::map<std::string, Tensor> activation_gradients;  // of those that influence the loss
  std::int64_t arena_bytes = 0;
  std::int64_t used_bytes = 0;
};

// Compile options for a reference: its loss, parameters and frozen values.
CompileOptions reference_compile_options(const ReferenceMeta& meta, GraphMode mode,
                                         const GradientsOptions& options);

GradientsResult compute_gradients(const OnnxModel& model, const ReferenceMeta& meta,
                                  const Batch& batch, const GradientsOptions& options);

// `loss`, `grad:NAME`, `act:VALUE`, `dact:VALUE` as a safetensors file.
void write_gradients(const GradientsResult& result, const std::filesystem::path& path);

}  // namespace trainscope
