// Sums, means, norms, products and extremes over axes. Float sums and products are accumulated in
// double.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cuda/reduce/reduction.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// Integers wrap around.
template <class T>
using Accumulator = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<double>>::type;

template <class T>
struct SumOf {
  using Element = T;
  using Result = T;
  using Accumulated = Accumulator<T>;
  using C = Computed<T>;
  __device__ static Accumulated empty() { return Accumulated{}; }
  __device__ static Accumulated map(C x) { return static_cast<Accumulated>(x); }
  __device__ static Accumulated join(Accumulated a, Accumulated b) { return a + b; }
  __device__ static T finish(Accumulated sum, std::int64_t /*count*/) {
    return static_cast<T>(sum);
  }
};

// The sum of numbers of bf16 or f16 as f32: it is not rounded to their type.
template <class T>
struct WideSumOf : SumOf<T> {
  using Result = Computed<T>;
  __device__ static Result finish(double sum, std::int64_t /*count*/) {
    return static_cast<Result>(sum);
  }
};

template <class T>
struct MeanOf : SumOf<T> {
  __device__ static T finish(double sum, std::int64_t count) {
    return static_cast<T>(sum / static_cast<double>(count));
  }
};

template <class T>
struct MagnitudesOf : SumOf<T> {
  using A = Accumulator<T>;
  __device__ static A map(Computed<T> x) {
    const A number = static_cast<A>(x);
    return x < Computed<T>{0} ? A{0} - number : number;
  }
};

template <class T>
struct SquaresOf : SumOf<T> {
  using A = Accumulator<T>;
  __device__ static A map(Computed<T> x) { return static_cast<A>(x) * static_cast<A>(x); }
};

template <class T>
struct LengthOf : SquaresOf<T> {
  __device__ static T finish(double squares, std::int64_t /*count*/) {
    return static_cast<T>(std::sqrt(squares));
  }
};

template <class T>
struct ProductOf : SumOf<T> {
  using A = Accumulator<T>;
  __device__ static A empty() { return A{1}; }
  __device__ static A join(A a, A b) { return a * b; }
};

// The largest or smallest element. A NaN wins: it fails every comparison but with itself.
template <class T>
struct LargestOf {
  using Element = T;
  using Result = T;
  using Accumulated = Computed<T>;
  using Limits = std::numeric_limits<Accumulated>;
  static constexpr Accumulated kLeast =
      Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  __device__ static Accumulated empty() { return kLeast; }
  __device__ static Accumulated map(Accumulated x) { return x; }
  __device__ static Accumulated join(Accumulated a, Accumulated b) {
    return (b > a || b != b) ? b : a;
  }
  __device__ static T finish(Accumulated largest, std::int64_t /*count*/) {
    return static_cast<T>(largest);
  }
};

template <class T>
struct SmallestOf : LargestOf<T> {
  using Accumulated = Computed<T>;
  using Limits = std::numeric_limits<Accumulated>;
  static constexpr Accumulated kMost = Limits::has_infinity ? Limits::infinity() : Limits::max();
  __device__ static Accumulated empty() { return kMost; }
  __device__ static Accumulated join(Accumulated a, Accumulated b) {
    return (b < a || b != b) ? b : a;
  }
};

template <class P>
void add_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, kDTypeOf<typename P::Element>,
            {.name = name,
             .supports = supports_reduction,
             .prepare = prepare_reduction<P>,
             .run = run_reduction<P>});
}

template <template <class> class P>
void add_float_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  for_float_types([&](auto* type) { add_reduction<P<Pointee<decltype(type)>>>(table, op, name); });
}

template <template <class> class P>
void add_plain_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  for_types<float, double, std::int32_t, std::int64_t>(
      [&](auto* type) { add_reduction<P<Pointee<decltype(type)>>>(table, op, name); });
}

}  // namespace

void add_reduce(KernelTable& table) {
  add_plain_reduction<SumOf>(table, "ReduceSum", "reduce_sum.cuda");
  add_reduction<SumOf<BFloat16>>(table, "ReduceSum", "reduce_sum.cuda");
  add_reduction<SumOf<Float16>>(table, "ReduceSum", "reduce_sum.cuda");
  add_reduction<SumOf<float>>(table, "ReduceSumWide", "reduce_sum_wide.cuda");
  add_reduction<SumOf<double>>(table, "ReduceSumWide", "reduce_sum_wide.cuda");
  add_reduction<WideSumOf<BFloat16>>(table, "ReduceSumWide", "reduce_sum_wide.cuda");
  add_reduction<WideSumOf<Float16>>(table, "ReduceSumWide", "reduce_sum_wide.cuda");
  add_float_reduction<MeanOf>(table, "ReduceMean", "reduce_mean.cuda");
  add_plain_reduction<MagnitudesOf>(table, "ReduceL1", "reduce_l1.cuda");
  add_reduction<LengthOf<float>>(table, "ReduceL2", "reduce_l2.cuda");
  add_reduction<LengthOf<double>>(table, "ReduceL2", "reduce_l2.cuda");
  add_plain_reduction<SquaresOf>(table, "ReduceSumSquare", "reduce_sum_square.cuda");
  add_plain_reduction<ProductOf>(table, "ReduceProd", "reduce_prod.cuda");
  add_plain_reduction<LargestOf>(table, "ReduceMax", "reduce_max.cuda");
  add_plain_reduction<SmallestOf>(table, "ReduceMin", "reduce_min.cuda");
}

}  // namespace trainscope::cuda
