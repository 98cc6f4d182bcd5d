// Comparison, logic and selection with numpy broadcasting.
#include <cstdint>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

struct EqualFunction {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a == b;
  }
};

struct LessFunction {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};

struct GreaterFunction {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a > b;
  }
};

struct LessOrEqualFunction {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct GreaterOrEqualFunction {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a >= b;
  }
};

struct AndFunction {
  __device__ bool operator()(bool a, bool b) const { return a && b; }
};

struct OrFunction {
  __device__ bool operator()(bool a, bool b) const { return a || b; }
};

struct XorFunction {
  __device__ bool operator()(bool a, bool b) const { return a != b; }
};

struct NotFunction {
  __device__ bool operator()(bool x) const { return !x; }
};

template <class F, class T>
void add_comparison_for(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, kDTypeOf<T>,
            {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, bool, F>});
}

template <class F>
void add_comparison(KernelTable& table, std::string_view op, std::string_view name) {
  for_number_types(
      [&](auto* type) { add_comparison_for<F, Pointee<decltype(type)>>(table, op, name); });
}

// Of elements by their bits.
struct WhereFunction {
  template <class T>
  __device__ T operator()(std::uint8_t condition, T x, T y) const {
    return condition != 0 ? x : y;
  }
};

void run_where(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) {
    using T = Pointee<decltype(type)>;
    map_broadcast<T, std::uint8_t, T, T>(run, WhereFunction{});
  });
}

}  // namespace

void add_logic(KernelTable& table) {
  add_comparison<EqualFunction>(table, "Equal", "equal.cuda");
  add_comparison<LessFunction>(table, "Less", "less.cuda");
  add_comparison<GreaterFunction>(table, "Greater", "greater.cuda");
  add_comparison<LessOrEqualFunction>(table, "LessOrEqual", "less_or_equal.cuda");
  add_comparison<GreaterOrEqualFunction>(table, "GreaterOrEqual", "greater_or_equal.cuda");
  add_comparison_for<EqualFunction, bool>(table, "Equal", "equal.cuda");
  add_comparison_for<AndFunction, bool>(table, "And", "and.cuda");
  add_comparison_for<OrFunction, bool>(table, "Or", "or.cuda");
  add_comparison_for<XorFunction, bool>(table, "Xor", "xor.cuda");
  table.add("Not", DType::kBool, {.name = "not.cuda", .run = run_unary<bool, NotFunction>});
  for (const DType dtype : kAllDTypes) {
    table.add("Where", dtype,
              {.name = "where.cuda", .prepare = prepare_broadcast, .run = run_where});
  }
}

}  // namespace trainscope::cuda
