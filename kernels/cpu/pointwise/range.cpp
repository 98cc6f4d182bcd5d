// Numbers at equal distances.
#include <cstdint>
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

// start + i * delta. The last number is before the limit; on the way there an integer product may
// wrap around: in the unsigned type, where that is defined.
template <class T>
T number_in_range(T start, T delta, std::int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    using Wrapping = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Wrapping>(start) +
                          static_cast<Wrapping>(i) * static_cast<Wrapping>(delta));
  } else {
    return start + static_cast<T>(i) * delta;
  }
}

template <class T>
void range(const RunArgs& run) {
  const T start = *run.inputs[0].as<const T>();
  const T delta = *run.inputs[2].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   y[i] = number_in_range(start, delta, i);
                 }
               });
}

template <class T>
constexpr Kernel kRange{.name = "range", .run = range<T>};

template <class T>
void add_for(KernelTable& table) {
  table.add("Range", kDTypeOf<T>, kRange<T>);
}

}  // namespace

void add_range(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
  add_for<std::int32_t>(table);
  add_for<std::int64_t>(table);
  add_upcast<kRange<float>>(table, "Range", "range.upcast");
  add_for<std::uint64_t>(table);
  add_upcast_integers<kRange<std::int64_t>>(table, "Range", "range");
}

}  // namespace trainscope::cpu
