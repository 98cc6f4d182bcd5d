// Comparison, logic and selection with numpy broadcasting.
#include <array>
#include <cstdint>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

struct EqualFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};

struct LessFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};

struct GreaterFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};

struct LessOrEqualFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};

struct GreaterOrEqualFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};

struct AndFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  static bool apply(bool a, bool b) { return a && b; }
};

struct OrFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  static bool apply(bool a, bool b) { return a || b; }
};

struct XorFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  static bool apply(bool a, bool b) { return a != b; }
};

struct NotFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  static bool apply(bool x) { return !x; }
};

template <class F, class T>
Kernel comparison_kernel(std::string_view name) {
  return {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, bool, F>};
}

template <class F>
constexpr Kernel kComparison{
    .name = {}, .prepare = prepare_broadcast, .run = run_binary<std::int64_t, bool, F>};

template <class F>
void add_comparison(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, comparison_kernel<F, float>(name));
  table.add(op, DType::kF64, comparison_kernel<F, double>(name));
  table.add(op, DType::kBF16, comparison_kernel<F, BFloat16>(name));
  table.add(op, DType::kF16, comparison_kernel<F, Float16>(name));
  table.add(op, DType::kI32, comparison_kernel<F, std::int32_t>(name));
  table.add(op, DType::kI64, comparison_kernel<F, std::int64_t>(name));
  table.add(op, DType::kU64, comparison_kernel<F, std::uint64_t>(name));
  add_upcast_integers<kComparison<F>>(table, op, name);
}

// One row of Where; each of the inputs is an array (stride 1) or one element (stride 0).
template <class T>
struct WhereRow {
  const std::uint8_t* condition;
  const T* x;
  const T* y;
  T* z;
  std::int64_t count;

  template <int kStrideC, int kStrideX, int kStrideY>
  static void run(const WhereRow& row) {
    const std::uint8_t* c = row.condition;
    const T* x = row.x;
    const T* y = row.y;
    T* z = row.z;
#pragma omp simd
    for (std::int64_t i = 0; i < row.count; ++i) {
      // By bits, which vectorises: a bool and an element differ in width.
      const T mask = static_cast<T>(T{0} - static_cast<T>(c[i * kStrideC] != 0));
      z[i] = static_cast<T>((x[i * kStrideX] & mask) | (y[i * kStrideY] & ~mask));
    }
  }

  using Run = void (*)(const WhereRow&);
  static constexpr std::array<Run, 8> kRuns = {run<0, 0, 0>, run<0, 0, 1>, run<0, 1, 0>,
                                               run<0, 1, 1>, run<1, 0, 0>, run<1, 0, 1>,
                                               run<1, 1, 0>, run<1, 1, 1>};
};

template <class T>
void where(const RunArgs& run) {
  const auto& loop = *static_cast<const StridedLoop*>(run.state);
  const auto* condition = run.inputs[0].as<const std::uint8_t>();
  const T* x = run.inputs[1].as<const T>();
  const T* y = run.inputs[2].as<const T>();
  T* z = run.outputs[0].as<T>();
  const auto variant = static_cast<std::size_t>(4 * loop.row_stride(1) + 2 * loop.row_stride(2) +
                                                loop.row_stride(3));
  parallel_for(run.threads, loop.elements, kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   WhereRow<T>::kRuns[variant]({.condition = condition + at[1],
                                                .x = x + at[2],
                                                .y = y + at[3],
                                                .z = z + at[0],
                                                .count = count});
                 });
               });
}

void run_where(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { where<Pointee<decltype(type)>>(run); });
}

}  // namespace

void add_logic(KernelTable& table) {
  add_comparison<EqualFunction>(table, "Equal", "equal");
  add_comparison<LessFunction>(table, "Less", "less");
  add_comparison<GreaterFunction>(table, "Greater", "greater");
  add_comparison<LessOrEqualFunction>(table, "LessOrEqual", "less_or_equal");
  add_comparison<GreaterOrEqualFunction>(table, "GreaterOrEqual", "greater_or_equal");
  table.add("Equal", DType::kBool, comparison_kernel<EqualFunction, bool>("equal"));
  table.add("And", DType::kBool, comparison_kernel<AndFunction, bool>("and"));
  table.add("Or", DType::kBool, comparison_kernel<OrFunction, bool>("or"));
  table.add("Xor", DType::kBool, comparison_kernel<XorFunction, bool>("xor"));
  table.add("Not", DType::kBool, {.name = "not", .run = run_unary<bool, NotFunction>});
  for (DType dtype : kAllDTypes) {
    table.add("Where", dtype, {.name = "where", .prepare = prepare_broadcast, .run = run_where});
  }
}

}  // namespace trainscope::cpu
