// Sums and means over axes. Float sums are accumulated in double.
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/reduction.h"

namespace trainscope::cpu {
namespace {

// Integers wrap around.
template <class T>
using Accumulator = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<double>>::type;

template <class T>
struct SumOf {
  using Element = T;
  using Accumulated = Accumulator<T>;
  static Accumulated empty() { return Accumulated{}; }
  static Accumulated map(T x) { return static_cast<Accumulated>(x); }
  static Accumulated join(Accumulated a, Accumulated b) { return a + b; }
  static T finish(Accumulated sum, std::int64_t /*count*/) { return static_cast<T>(sum); }
};

template <class T>
struct MeanOf : SumOf<T> {
  static T finish(double sum, std::int64_t count) {
    return static_cast<T>(sum / static_cast<double>(count));
  }
};

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
void add_number_reduction(KernelTable& table, std::string_view op, std::string_view name) {
  add_float_reduction<P>(table, op, name);
  add_reduction<P<std::int32_t>>(table, op, name);
  add_reduction<P<std::int64_t>>(table, op, name);
}

}  // namespace

void add_reduce(KernelTable& table) {
  add_number_reduction<SumOf>(table, "ReduceSum", "reduce_sum");
  add_float_reduction<MeanOf>(table, "ReduceMean", "reduce_mean");
}

}  // namespace trainscope::cpu
