// An f32 kernel as one on tensors stored in two bytes: they are converted to and from f32 copies in
// the workspace. For ops whose time is not in reading and writing, and for the processors without
// instructions for the stored types.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {

// --- How it is done ------------------------------------------------------------------------------

inline constexpr std::size_t kMostWidened = 17;  // inputs of a kernel, and outputs

inline std::size_t widened_bytes(const TensorView& view) {
  return round_up(static_cast<std::size_t>(view.elements()) * sizeof(float), 64);
}

// The views that the f32 kernel gets: those of stored types lie one after the other in `copies`,
// which is null while nothing but shapes is known.
class WidenedViews {
 public:
  WidenedViews(std::span<const TensorView> stored, std::byte* copies) : count_(stored.size()) {
    std::copy(stored.begin(), stored.end(), views_.begin());
    for (TensorView& view : std::span(views_).first(count_)) {
      if (!view.present || !is_stored_only(view.type.dtype)) continue;
      view.type.dtype = DType::kF32;
      view.data = copies == nullptr ? nullptr : copies + bytes_;
      bytes_ += widened_bytes(view);
    }
  }
  std::span<const TensorView> span() const { return std::span(views_).first(count_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::array<TensorView, kMostWidened> views_;
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

inline void widen(const TensorView& stored, const TensorView& copy, int threads) {
  if (!stored.present || stored.type.dtype == copy.type.dtype) return;
  if (stored.type.dtype == DType::kBF16) convert_elements<BFloat16, float>(stored, copy, threads);
  if (stored.type.dtype == DType::kF16) convert_elements<Float16, float>(stored, copy, threads);
}
inline void narrow(const TensorView& copy, const TensorView& stored, int threads) {
  if (!stored.present || stored.type.dtype == copy.type.dtype) return;
  if (stored.type.dtype == DType::kBF16) convert_elements<float, BFloat16>(copy, stored, threads);
  if (stored.type.dtype == DType::kF16) convert_elements<float, Float16>(copy, stored, threads);
}

// Workspace: the f32 kernel's own, then its inputs, then its outputs.
struct WidenedState {
  Prepared base;
  std::size_t base_bytes = 0;
};

template <const Kernel& kBase>
bool supports_widened(const PrepareArgs& args) {
  if (args.inputs.size() > kMostWidened || args.outputs.size() > kMostWidened) return false;
  if (kBase.supports == nullptr) return true;
  const WidenedViews inputs(args.inputs, nullptr);
  const WidenedViews outputs(args.outputs, nullptr);
  return kBase.supports({.params = args.params,
                         .inputs = inputs.span(),
                         .outputs = outputs.span(),
                         .threads = args.threads});
}

template <const Kernel& kBase>
Prepared prepare_widened(const PrepareArgs& args) {
  const WidenedViews inputs(args.inputs, nullptr);
  const WidenedViews outputs(args.outputs, nullptr);
  auto state = std::make_shared<WidenedState>();
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
void run_widened(const RunArgs& args) {
  const auto& state = *static_cast<const WidenedState*>(args.state);
  std::byte* copies = static_cast<std::byte*>(args.workspace) + state.base_bytes;
  const WidenedViews inputs(args.inputs, copies);
  const WidenedViews outputs(args.outputs, copies + inputs.bytes());
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    widen(args.inputs[i], inputs.span()[i], args.threads);
  }
  kBase.run({.params = args.params,
             .inputs = inputs.span(),
             .outputs = outputs.span(),
             .workspace = args.workspace,
             .state = state.base.state.get(),
             .threads = args.threads});
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    narrow(outputs.span()[i], args.outputs[i], args.threads);
  }
}

// The kernel made of `kBase`, for either of the stored types.
template <const Kernel& kBase>
constexpr Kernel widened(std::string_view name) {
  return {.name = name,
          .supports = supports_widened<kBase>,
          .prepare = prepare_widened<kBase>,
          .run = run_widened<kBase>,
          .same_for_any_threads = kBase.same_for_any_threads};
}

template <const Kernel& kBase>
void add_widened(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kBF16, widened<kBase>(name));
  table.add(op, DType::kF16, widened<kBase>(name));
}

}  // namespace trainscope::cpu
