// Copies of narrow integers as i64 around a kernel for i64.
#include "kernels/cpu/support/upcast_integers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "kernels/api/conversion.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kMostUpcastIntegers = 8;

// The views that the i64 kernel gets: tensors of narrow integers have copies, one after the other
// in `copies`, which is null while nothing but shapes is known.
class WideViews {
 public:
  WideViews(std::span<const TensorView> narrow, std::byte* copies) : count_(narrow.size()) {
    std::copy(narrow.begin(), narrow.end(), views_.begin());
    for (TensorView& view : std::span(views_).first(count_)) {
      if (!view.present || !is_narrow_integer(view.type.dtype)) continue;
      view.type.dtype = DType::kI64;
      view.data = copies == nullptr ? nullptr : copies + bytes_;
      bytes_ += round_up(view.type.bytes(), 64);
    }
  }
  std::span<const TensorView> span() const { return std::span(views_).first(count_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::array<TensorView, kMostUpcastIntegers> views_;
  std::size_t count_;
  std::size_t bytes_ = 0;
};

struct WideState {
  Prepared base;
  std::size_t base_bytes = 0;
};

void copy_elements(const TensorView& from, const TensorView& to, int threads) {
  if (!from.present || from.type.dtype == to.type.dtype) return;
  const auto chunk = [](const TensorView& view, std::int64_t begin) -> ElementsOf {
    const auto offset = static_cast<std::size_t>(begin) * size_of(view.type.dtype);
    return {view.type.dtype, view.as<std::byte>() + offset};
  };
  parallel_for(threads, from.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    convert_elements(chunk(from, begin), chunk(to, begin), end - begin);
  });
}

PrepareArgs with_views(const PrepareArgs& args, const WideViews& inputs, const WideViews& outputs) {
  return {.params = args.params,
          .inputs = inputs.span(),
          .outputs = outputs.span(),
          .threads = args.threads};
}

}  // namespace

Support supports_upcast_integers(const Kernel& base, const PrepareArgs& args) {
  if (args.inputs.size() > kMostUpcastIntegers || args.outputs.size() > kMostUpcastIntegers) {
    return {"more inputs or outputs than are upcast"};
  }
  if (base.supports == nullptr) return {};
  const WideViews inputs(args.inputs, nullptr);
  const WideViews outputs(args.outputs, nullptr);
  return base.supports(with_views(args, inputs, outputs));
}

// The workspace holds that of the i64 kernel, then the copies of the inputs, then those of the
// outputs.
Prepared prepare_upcast_integers(const Kernel& base, const PrepareArgs& args) {
  const WideViews inputs(args.inputs, nullptr);
  const WideViews outputs(args.outputs, nullptr);
  auto state = std::make_shared<WideState>();
  if (base.prepare != nullptr) state->base = base.prepare(with_views(args, inputs, outputs));
  state->base_bytes = round_up(state->base.workspace_bytes, 64);
  return {.workspace_bytes = state->base_bytes + inputs.bytes() + outputs.bytes(), .state = state};
}

void run_upcast_integers(const Kernel& base, const RunArgs& run) {
  const auto& state = *static_cast<const WideState*>(run.state);
  std::byte* copies = static_cast<std::byte*>(run.workspace) + state.base_bytes;
  const WideViews inputs(run.inputs, copies);
  const WideViews outputs(run.outputs, copies + inputs.bytes());
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    copy_elements(run.inputs[i], inputs.span()[i], run.threads);
  }
  base.run({.params = run.params,
            .inputs = inputs.span(),
            .outputs = outputs.span(),
            .workspace = run.workspace,
            .state = state.base.state.get(),
            .threads = run.threads,
            .call = run.call});
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    copy_elements(outputs.span()[i], run.outputs[i], run.threads);
  }
}

}  // namespace trainscope::cpu
