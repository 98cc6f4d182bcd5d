// Runs one kernel on views of vectors, for ops whose tensors have several dtypes.
#pragma once

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

template <typename T>
TensorView view_of(std::vector<T>& values, const Shape& shape) {
  CHECK(static_cast<std::int64_t>(values.size()) == shape.elements());
  return {.type = {.dtype = kDTypeOf<T>, .shape = shape}, .data = values.data()};
}
template <typename T>
TensorView scalar_view(T& value) {
  return {.type = {.dtype = kDTypeOf<T>, .shape = {}}, .data = &value};
}

struct ViewCall {
  std::string_view op;
  DType dtype;
  Params params;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  int threads = 1;
};

inline void run_on_views(const KernelTable& table, const ViewCall& call) {
  const std::vector<const Kernel*> found = table.find(call.op, call.dtype);
  REQUIRE(!found.empty());
  const Kernel& kernel = *found.front();
  const PrepareArgs args{.params = call.params,
                         .inputs = call.inputs,
                         .outputs = call.outputs,
                         .threads = call.threads};
  REQUIRE((kernel.supports == nullptr || kernel.supports(args)));
  Prepared prepared;
  if (kernel.prepare) prepared = kernel.prepare(args);
  std::vector<double> workspace((prepared.workspace_bytes + 7) / 8);
  kernel.run({.params = call.params,
              .inputs = call.inputs,
              .outputs = call.outputs,
              .workspace = workspace.data(),
              .state = prepared.state.get(),
              .threads = call.threads});
}

}  // namespace trainscope::cpu
