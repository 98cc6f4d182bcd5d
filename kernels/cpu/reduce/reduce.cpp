// Sums, means, norms, products and extremes over axes. Float sums and products are accumulated in
// double.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/reduce/reduction.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
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
  static Accumulated empty() { return Accumulated{}; }
  static Accumulated map(T x) { return static_cast<Accumulated>(x); }
  static Accumulated join(Accumulated a, Accumulated b) { return a + b; }
  static T finish(Accumulated sum, std::int64_t /*count*/) { return static_cast<T>(sum); }
};

// The sum of numbers of bf16 or f16 as f32: it is not rounded to their type.
template <class T>
struct UpcastSumOf : SumOf<T> {
  using Result = Computed<T>;
  static Result finish(double sum, std::int64_t /*count*/) { return static_cast<Result>(sum); }
};

template <class T>
struct MeanOf : SumOf<T> {
  static T finish(double sum, std::int64_t count) {
    return static_cast<T>(sum / static_cast<double>(count));
  }
};

template <class T>
struct MagnitudesOf : SumOf<T> {
  using A = Accumulator<T>;
  static A map(T x) {
    const A number = static_cast<A>(x);
    return !std::is_unsigned_v<T> && x < T{0} ? A{0} - number : number;
  }
};

template <class T>
struct SquaresOf : SumOf<T> {
  using A = Accumulator<T>;
  static A map(T x) { return static_cast<A>(x) * static_cast<A>(x); }
};

template <class T>
struct LengthOf : SquaresOf<T> {
  static T finish(double squares, std::int64_t /*count*/) {
    return static_cast<T>(std::sqrt(squares));
  }
};

template <class T>
struct ProductOf : SumOf<T> {
  using A = Accumulator<T>;
  static A empty() { return A{1}; }
  static A join(A a, A b) { return a * b; }
};

// The largest or smallest element. A NaN wins: it fails every comparison but with itself.
template <class T>
struct LargestOf {
  using Element = T;
  using Result = T;
  using Accumulated = T;
  using Limits = std::numeric_limits<T>;
  static T empty() { return Limits::has_infinity ? -Limits::infinity() : Limits::lowest(); }
  static T map(T x) { return x; }
  static T join(T a, T b) { return (b > a || b != b) ? b : a; }
  static T finish(T largest, std::int64_t /*count*/) { return largest; }
};

template <class T>
struct SmallestOf : LargestOf<T> {
  using Limits = std::numeric_limits<T>;
  static T empty() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
  static T join(T a, T b) { return (b < a || b != b) ? b : a; }
};

template <class P>
constexpr Kernel kReduction{
    .name = "reduction", .prepare = prepare_reduction<P>, .run = run_reduction<P>};

template <class P>
void add_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, kDTypeOf<typename P::Element>,
            {.name = name, .prepare = prepare_reduction<P>, .run = run_reduction<P>});
}

template <template <class> class P>
void add_float_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  add_reduction<P<float>>(table, op, name);
  add_reduction<P<double>>(table, op, name);
}

template <template <class> class P>
void add_stored_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  add_reduction<P<BFloat16>>(table, op, name);
  add_reduction<P<Float16>>(table, op, name);
}

template <template <class> class P>
void add_number_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  add_float_reduction<P>(table, op, name);
  add_reduction<P<std::int32_t>>(table, op, name);
  add_reduction<P<std::int64_t>>(table, op, name);
  add_reduction<P<std::uint64_t>>(table, op, name);
  add_upcast_integers<kReduction<P<std::int64_t>>>(table, op, name);
}

}  // namespace

void add_reduce(KernelTable& table) {
  add_number_reduction<SumOf>(table, "ReduceSum", "reduce_sum");
  add_stored_reduction<SumOf>(table, "ReduceSum", "reduce_sum");
  add_float_reduction<SumOf>(table, "ReduceSumWide", "reduce_sum_wide");
  add_stored_reduction<UpcastSumOf>(table, "ReduceSumWide", "reduce_sum_wide");
  add_float_reduction<MeanOf>(table, "ReduceMean", "reduce_mean");
  add_stored_reduction<MeanOf>(table, "ReduceMean", "reduce_mean");
  add_number_reduction<MagnitudesOf>(table, "ReduceL1", "reduce_l1");
  add_float_reduction<LengthOf>(table, "ReduceL2", "reduce_l2");
  add_number_reduction<SquaresOf>(table, "ReduceSumSquare", "reduce_sum_square");
  add_number_reduction<ProductOf>(table, "ReduceProd", "reduce_prod");
  add_number_reduction<LargestOf>(table, "ReduceMax", "reduce_max");
  add_number_reduction<SmallestOf>(table, "ReduceMin", "reduce_min");
  add_upcast<kReduction<LargestOf<float>>>(table, "ReduceMax", "reduce_max.upcast");
  add_upcast<kReduction<SmallestOf<float>>>(table, "ReduceMin", "reduce_min.upcast");
}

}  // namespace trainscope::cpu
