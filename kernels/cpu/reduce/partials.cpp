// Sums over partials of one result, such as each batch tile makes.
#include <algorithm>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// out = inputs[0] + inputs[1] + ..., in this order for each element: all are of one shape. `out`
// may be inputs[0].
template <typename T>
void sum_in_order(const RunArgs& run) {
  T* out = run.outputs[0].as<T>();
  const std::int64_t elements = run.outputs[0].elements();
  parallel_for(run.threads, elements, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    const T* first = run.inputs[0].as<const T>();
    if (first != out) std::copy(first + begin, first + end, out + begin);
    for (const TensorView& input : run.inputs.subspan(1)) {
      const T* partial = input.as<const T>();
      for (std::int64_t e = begin; e < end; ++e) out[e] += partial[e];
    }
  });
}

}  // namespace

void add_partials(KernelTable& table) {
  table.add("AddPartials", DType::kF32, {.name = "add_partials", .run = sum_in_order<float>});
  table.add("AddPartials", DType::kF64, {.name = "add_partials", .run = sum_in_order<double>});
}

}  // namespace trainscope::cpu
