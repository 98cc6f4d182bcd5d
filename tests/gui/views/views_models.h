// Models compiled with all their stages, and a machine, for tests of views.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/compile.h"
#include "engine/machine/machine.h"
#include "engine/models/models.h"
#include "engine/record_plan.h"

namespace trainscope::gui::test {

inline CompileOptions options_for(const OnnxModel& model) {
  CompileOptions options;
  options.passes.keep = KeepGraphs::kAll;
  for (const ModelTensor& input : model.inputs()) {
    for (const ModelDim& dim : *input.dims) {
      if (!dim.size) options.import.dims[dim.symbol] = 4;
    }
  }
  return options;
}

inline OnnxModel model_of(std::string_view name, const ModelArguments& arguments) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

inline const ModelArguments kSmallText{{"layers", std::int64_t{3}},
                                       {"heads", std::int64_t{2}},
                                       {"embedding", std::int64_t{16}},
                                       {"vocab", std::int64_t{32}},
                                       {"context", std::int64_t{8}}};

inline std::unique_ptr<Compiled> compiled(std::string_view name,
                                          const ModelArguments& arguments = {}) {
  const OnnxModel model = model_of(name, arguments);
  return compile(model, options_for(model));
}

// A machine of two cores with one level of memory.
inline Machine small_machine() {
  Machine machine;
  machine.name = "small";
  machine.cores = 2;
  machine.seconds_per_call = 1e-6;
  machine.seconds_per_fork = 1e-6;
  machine.host_link = {.bytes_per_second = 1e9, .seconds_per_transfer = 1e-6};
  machine.flops_per_second[DType::kF32] = {.one = 10e9, .all = 15e9};
  const Rate rate{.one = 5e9, .all = 8e9};
  machine.levels = {
      {.name = "memory", .bytes = 1 << 30, .read = rate, .write = rate, .copy = rate}};
  return machine;
}

}  // namespace trainscope::gui::test
