// The larger and the smaller of numbers, with numpy broadcasting, and limits.
#include <limits>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

// A NaN wins, as in numpy and PyTorch: it fails every comparison but with itself.
struct MaximumFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return (a > b || a != a) ? a : b;
  }
};

struct MinimumFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return (a < b || a != a) ? a : b;
  }
};

template <class F, class T>
void add_extreme_for(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, kDTypeOf<T>,
            {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, T, F>});
}

template <class F, class T>
constexpr Kernel kExtreme{
    .name = "extreme", .prepare = prepare_broadcast, .run = run_binary<T, T, F>};

template <class F>
void add_extreme(KernelTable& table, std::string_view op, std::string_view name) {
  add_extreme_for<F, float>(table, op, name);
  add_extreme_for<F, double>(table, op, name);
  add_extreme_for<F, std::int32_t>(table, op, name);
  add_extreme_for<F, std::int64_t>(table, op, name);
  add_extreme_for<F, std::uint64_t>(table, op, name);
  add_upcast_integers<kExtreme<F, std::int64_t>>(table, op, name);
}

// Inputs dy, a, b.
template <class T>
void run_maximum_grad(const RunArgs& run) {
  map_triples<T>(run, run.inputs[2].as<const T>(), kElementGrain, [](T dy, T a, T b) {
    const T shared = a == b ? dy * T(0.5) : dy;
    return a < b ? T(0) : shared;
  });
}

template <class T>
constexpr Kernel kMaximumGrad{
    .name = "maximum_grad", .prepare = prepare_broadcast, .run = run_maximum_grad<T>};

template <class T>
T limit(const RunArgs& run, std::size_t input, T absent) {
  const bool given = input < run.inputs.size() && run.inputs[input].present;
  return given ? *run.inputs[input].as<const T>() : absent;
}

// Inputs x and the optional lower and upper limit. A NaN passes through.
template <class T>
void run_clip(const RunArgs& run) {
  using Limits = std::numeric_limits<T>;
  const T lower = limit(run, 1, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  const T upper = limit(run, 2, Limits::has_infinity ? Limits::infinity() : Limits::max());
  map_elements<T>(run, kElementGrain, [lower, upper](T x) {
    const T raised = x < lower ? lower : x;
    return raised > upper ? upper : raised;
  });
}

template <class T>
constexpr Kernel kClip{.name = "clip", .run = run_clip<T>};

}  // namespace

void add_extremes(KernelTable& table) {
  add_extreme<MaximumFunction>(table, "Maximum", "maximum");
  add_extreme<MinimumFunction>(table, "Minimum", "minimum");
  add_upcast<kExtreme<MaximumFunction, float>>(table, "Maximum", "maximum.upcast");
  add_upcast<kExtreme<MinimumFunction, float>>(table, "Minimum", "minimum.upcast");
  table.add("MaximumGrad", DType::kF32, kMaximumGrad<float>);
  table.add("MaximumGrad", DType::kF64, kMaximumGrad<double>);
  add_upcast<kMaximumGrad<float>>(table, "MaximumGrad", "maximum_grad.upcast");
  table.add("Clip", DType::kF32, kClip<float>);
  table.add("Clip", DType::kF64, kClip<double>);
  table.add("Clip", DType::kI32, kClip<std::int32_t>);
  table.add("Clip", DType::kI64, kClip<std::int64_t>);
  table.add("Clip", DType::kU64, kClip<std::uint64_t>);
  add_upcast_integers<kClip<std::int64_t>>(table, "Clip", "clip");
  add_upcast<kClip<float>>(table, "Clip", "clip.upcast");
}

}  // namespace trainscope::cpu
