// An f32 kernel as one on tensors of bf16 or f16: inputs are upcast to f32 copies in the workspace,
// outputs are downcast from such copies. This is for ops whose time is not in reading and writing,
// and for processors without instructions for these types.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {

// --- How it is done ------------------------------------------------------------------------------

// The most inputs that a kernel has, and the most outputs.
inline constexpr std::size_t kMostUpcast = 17;

// Bytes of the f32 copy, in whole cache lines.
inline std::size_t upcast_bytes(const TensorView& view) {
  return round_up(static_cast<std::size_t>(view.elements()) * sizeof(float), 64);
}

// The views that the f32 kernel gets: tensors of bf16 and f16 have f32 copies, which lie one after
// the other in `copies`; `copies` is null while nothing but shapes is known.
class UpcastViews {
 public:
  UpcastViews(std::span<const TensorView> stored, std::byte* copies) : count_(stored.size()) {
    std::copy(stored.begin(), stored.end(), views_.begin());
    for (TensorView& view : std::span(views_).first(count_)) {
      if (!view.present || !is_stored_only(view.type.dtype)) continue;
      view.type.dtype = DType::kF32;
      view.data = copies == nullptr ? nullptr : copies + bytes_;
      bytes_ += upcast_bytes(view);
    }
  }
  std::span<const TensorView> span() const { return std::span(views_).first(count_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::array<TensorView, kMostUpcast> views_;
  std::size_t count_;
  std::size_t bytes_ = 0;
};

template <typename From, typename To>
void convert_elements(const TensorView& from, const TensorView& to, int threads) {
  const From* x = from.as<const From>();
  To* y = to.as<To>();
  parallel_for(threads, from.elements(), kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) store(y[i], computed(x[i]));
  });
}

inline void upcast(const TensorView& stored, const TensorView& copy, int threads) {
  if (!stored.present || stored.type.dtype == copy.type.dtype) return;
  if (stored.type.dtype == DType::kBF16) convert_elements<BFloat16, float>(stored, copy, threads);
  if (stored.type.dtype == DType::kF16) convert_elements<Float16, float>(stored, copy, threads);
}
inline void downcast(const TensorView& copy, const TensorView& stored, int threads) {
  if (!stored.present || stored.type.dtype == copy.type.dtype) return;
  if (stored.type.dtype == DType::kBF16) convert_elements<float, BFloat16>(copy, stored, threads);
  if (stored.type.dtype == DType::kF16) convert_elements<float, Float16>(copy, stored, threads);
}

// The workspace holds that of the f32 kernel, then the copies of the inputs, then those of the
// outputs.
struct UpcastState {
  Prepared base;
  std::size_t base_bytes = 0;
};

template <const Kernel& kBase>
Support supports_upcast(const PrepareArgs& args) {
  if (args.inputs.size() > kMostUpcast || args.outputs.size() > kMostUpcast) {
    return {"more inputs or outputs than are upcast"};
  }
  if (kBase.supports == nullptr) return {};
  const UpcastViews inputs(args.inputs, nullptr);
  const UpcastViews outputs(args.outputs, nullptr);
  return kBase.supports({.params = args.params,
                         .inputs = inputs.span(),
                         .outputs = outputs.span(),
                         .threads = args.threads});
}

template <const Kernel& kBase>
Prepared prepare_upcast(const PrepareArgs& args) {
  const UpcastViews inputs(args.inputs, nullptr);
  const UpcastViews outputs(args.outputs, nullptr);
  auto state = std::make_shared<UpcastState>();
  if (kBase.prepare != nullptr) {
    state->base = kBase.prepare({.params = args.params,
                                 .inputs = inputs.span(),
                                 .outputs = outputs.span(),
                                 .threads = args.threads});
  }
  state->base_bytes = round_up(state->base.workspace_bytes, 64);
  return {.workspace_bytes = state->base_bytes + inputs.bytes() + outputs.bytes(), .state = state};
}

template <const Kernel& kBase>
void run_upcast(const RunArgs& args) {
  const auto& state = *static_cast<const UpcastState*>(args.state);
  std::byte* copies = static_cast<std::byte*>(args.workspace) + state.base_bytes;
  const UpcastViews inputs(args.inputs, copies);
  const UpcastViews outputs(args.outputs, copies + inputs.bytes());
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    upcast(args.inputs[i], inputs.span()[i], args.threads);
  }
  kBase.run({.params = args.params,
             .inputs = inputs.span(),
             .outputs = outputs.span(),
             .workspace = args.workspace,
             .state = state.base.state.get(),
             .threads = args.threads,
             .call = args.call});
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    downcast(outputs.span()[i], args.outputs[i], args.threads);
  }
}

// Of the definition's bytes as many more as the copies have, or what the f32 kernel says; before
// and after it the conversions.
template <const Kernel& kBase>
Estimate estimate_upcast(const PrepareArgs& args, const Estimate& definition) {
  const UpcastViews inputs(args.inputs, nullptr);
  const UpcastViews outputs(args.outputs, nullptr);
  const auto grown = [](std::int64_t bytes, std::span<const TensorView> stored,
                        std::span<const TensorView> copies) {
    const double all = bytes_of(stored);
    return static_cast<double>(bytes) * (all > 0.0 ? bytes_of(copies) / all : 1.0);
  };
  Work work(static_cast<double>(definition.flops),
            grown(definition.bytes_read, args.inputs, inputs.span()),
            grown(definition.bytes_written, args.outputs, outputs.span()));
  if (kBase.estimate != nullptr) {
    work = Work(kBase.estimate({.params = args.params,
                                .inputs = inputs.span(),
                                .outputs = outputs.span(),
                                .threads = args.threads},
                               work.estimate()));
  }
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!args.inputs[i].present || !is_stored_only(args.inputs[i].type.dtype)) continue;
    work.add_copy(bytes_of(args.inputs[i]), bytes_of(inputs.span()[i]));
  }
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    if (!args.outputs[i].present || !is_stored_only(args.outputs[i].type.dtype)) continue;
    work.add_copy(bytes_of(outputs.span()[i]), bytes_of(args.outputs[i]));
  }
  return work.estimate();
}

// The kernel for bf16 or f16 that computes with the f32 kernel `kBase`.
template <const Kernel& kBase>
constexpr Kernel upcast_kernel(std::string_view name) {
  return {.name = name,
          .supports = supports_upcast<kBase>,
          .prepare = prepare_upcast<kBase>,
          .run = run_upcast<kBase>,
          .estimate = estimate_upcast<kBase>,
          .same_for_any_threads = kBase.same_for_any_threads};
}

// Adds that kernel for the op in bf16 and f16.
template <const Kernel& kBase>
void add_upcast(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kBF16, upcast_kernel<kBase>(name));
  table.add(op, DType::kF16, upcast_kernel<kBase>(name));
}

}  // namespace trainscope::cpu
