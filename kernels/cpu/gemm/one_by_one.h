// MultiMatMul as a kernel for single products, called for one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// --- How it is done ------------------------------------------------------------------------------

// x, a matrix and a bias, which may be absent.
struct OneProduct {
  std::array<TensorView, 3> inputs;
  std::span<const TensorView> outputs;
};

inline OneProduct one_product(std::span<const TensorView> inputs,
                              std::span<const TensorView> outputs, std::size_t i) {
  const std::size_t bias = 1 + outputs.size() + i;
  OneProduct product{.inputs = {inputs[0], inputs[1 + i],
                                TensorView{.type = {}, .data = nullptr, .present = false}},
                     .outputs = outputs.subspan(i, 1)};
  if (bias < inputs.size()) product.inputs[2] = inputs[bias];
  return product;
}

inline PrepareArgs with_product(const PrepareArgs& args, const OneProduct& product) {
  return {.params = args.params,
          .inputs = product.inputs,
          .outputs = product.outputs,
          .threads = args.threads};
}

template <const Kernel& kBase>
bool supports_one_by_one(const PrepareArgs& args) {
  for (std::size_t i = 0; kBase.supports != nullptr && i < args.outputs.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const OneProduct product = one_product(args.inputs, args.outputs, i);
    if (!kBase.supports(with_product(args, product))) return false;
  }
  return true;
}

template <const Kernel& kBase>
Prepared prepare_one_by_one(const PrepareArgs& args) {
  auto products = std::make_shared<std::vector<Prepared>>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    products->emplace_back();
    if (!args.outputs[i].present) continue;  // a repeat leaves out what nobody reads again
    const OneProduct product = one_product(args.inputs, args.outputs, i);
    products->back() = kBase.prepare(with_product(args, product));
    bytes = std::max(bytes, products->back().workspace_bytes);
  }
  return {.workspace_bytes = bytes, .state = products};
}

template <const Kernel& kBase>
void run_one_by_one(const RunArgs& args) {
  const auto& products = *static_cast<const std::vector<Prepared>*>(args.state);
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const OneProduct product = one_product(args.inputs, args.outputs, i);
    kBase.run({.params = args.params,
               .inputs = product.inputs,
               .outputs = product.outputs,
               .workspace = args.workspace,
               .state = products[i].state.get(),
               .threads = args.threads});
  }
}

template <const Kernel& kBase>
constexpr Kernel one_by_one(std::string_view name) {
  return {.name = name,
          .supports = supports_one_by_one<kBase>,
          .prepare = prepare_one_by_one<kBase>,
          .run = run_one_by_one<kBase>,
          .same_for_any_threads = kBase.same_for_any_threads};
}

}  // namespace trainscope::cpu
