// Models compiled with all their stages, for tests of views.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/compile.h"
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

}  // namespace trainscope::gui::test
