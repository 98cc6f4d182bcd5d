// MultiMatMul on a kernel for single matmuls, which is called for one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/estimate.h"

namespace trainscope::cpu {

// --- How it is done ------------------------------------------------------------------------------

// One matmul of a MultiMatMul: its inputs x, a matrix and a bias, which may be absent, its output.
struct OneMatmul {
  std::array<TensorView, 3> inputs;
  std::span<const TensorView> outputs;
};

inline OneMatmul one_matmul(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                            std::size_t i) {
  const std::size_t bias = 1 + outputs.size() + i;
  OneMatmul matmul{.inputs = {inputs[0], inputs[1 + i],
                              TensorView{.type = {}, .data = nullptr, .present = false}},
                   .outputs = outputs.subspan(i, 1)};
  if (bias < inputs.size()) matmul.inputs[2] = inputs[bias];
  return matmul;
}

inline PrepareArgs with_matmul(const PrepareArgs& args, const OneMatmul& matmul) {
  return {.params = args.params,
          .inputs = matmul.inputs,
          .outputs = matmul.outputs,
          .threads = args.threads};
}

template <const Kernel& kBase>
Support supports_one_by_one(const PrepareArgs& args) {
  for (std::size_t i = 0; kBase.supports != nullptr && i < args.outputs.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const OneMatmul matmul = one_matmul(args.inputs, args.outputs, i);
    const Support support = kBase.supports(with_matmul(args, matmul));
    if (!support) return support;
  }
  return {};
}

// Each matmul reads x.
inline Estimate estimate_one_by_one(const PrepareArgs& args, const Estimate& definition) {
  const auto made = std::count_if(args.outputs.begin(), args.outputs.end(),
                                  [](const TensorView& output) { return output.present; });
  Work work(definition);
  work.bytes_read +=
      static_cast<double>(std::max<std::int64_t>(0, made - 1)) * bytes_of(args.inputs[0]);
  return work.estimate();
}

template <const Kernel& kBase>
Prepared prepare_one_by_one(const PrepareArgs& args) {
  auto matmuls = std::make_shared<std::vector<Prepared>>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    matmuls->emplace_back();
    // A rematerialized call leaves out the outputs that nobody reads any more.
    if (!args.outputs[i].present) continue;
    const OneMatmul matmul = one_matmul(args.inputs, args.outputs, i);
    matmuls->back() = kBase.prepare(with_matmul(args, matmul));
    bytes = std::max(bytes, matmuls->back().workspace_bytes);
  }
  return {.workspace_bytes = bytes, .state = matmuls};
}

template <const Kernel& kBase>
void run_one_by_one(const RunArgs& args) {
  const auto& matmuls = *static_cast<const std::vector<Prepared>*>(args.state);
  for (std::size_t i = 0; i < matmuls.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const OneMatmul matmul = one_matmul(args.inputs, args.outputs, i);
    kBase.run({.params = args.params,
               .inputs = matmul.inputs,
               .outputs = matmul.outputs,
               .workspace = args.workspace,
               .state = matmuls[i].state.get(),
               .threads = args.threads,
               .call = args.call});
  }
}

template <const Kernel& kBase>
constexpr Kernel one_by_one(std::string_view name) {
  return {.name = name,
          .supports = supports_one_by_one<kBase>,
          .prepare = prepare_one_by_one<kBase>,
          .run = run_one_by_one<kBase>,
          .estimate = estimate_one_by_one,
          .same_for_any_threads = kBase.same_for_any_threads};
}

}  // namespace trainscope::cpu
