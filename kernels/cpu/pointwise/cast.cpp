// Conversion between element types.
#include <cstddef>
#include <type_traits>
#include <variant>

#include "kernels/api/conversion.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/support/convert.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {
namespace {

template <class From, class To>
void cast(const RunArgs& run) {
  // A bool is read as the byte it is: a loop over bytes vectorises.
  using Stored = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
  const Stored* x = run.inputs[0].as<const Stored>();
  To* y = run.outputs[0].as<To>();
  parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
               [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i)
                   store(y[i], converted<Computed<To>>(computed(x[i])));
               });
}

// Types without loops of their own: elements are converted a block at a time.
void cast_by_blocks(const RunArgs& run) {
  const TensorView& x = run.inputs[0];
  const TensorView& y = run.outputs[0];
  const auto chunk = [](const TensorView& view, std::int64_t begin) -> ElementsOf {
    const auto offset = static_cast<std::size_t>(begin) * size_of(view.type.dtype);
    return {view.type.dtype, view.as<std::byte>() + offset};
  };
  const auto* given = std::get_if<CastParams>(&run.params);
  const ConversionRule rule = given == nullptr ? ConversionRule{} : given->conversion;
  parallel_for(run.threads, y.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    convert_elements(chunk(x, begin), chunk(y, begin), end - begin, rule);
  });
}

bool has_loops(DType dtype) {
  bool called = false;
  with_dtype(dtype, [&](auto*) { called = true; });
  return called;
}

void run_cast(const RunArgs& run) {
  if (!has_loops(run.inputs[0].type.dtype) || !has_loops(run.outputs[0].type.dtype)) {
    return cast_by_blocks(run);
  }
  with_dtype(run.inputs[0].type.dtype, [&](auto* from) {
    with_dtype(run.outputs[0].type.dtype,
               [&](auto* to) { cast<Pointee<decltype(from)>, Pointee<decltype(to)>>(run); });
  });
}

}  // namespace

void add_cast(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("Cast", dtype, {.name = "cast", .run = run_cast});
    table.add("StorageCast", dtype, {.name = "storage_cast", .run = cast_by_blocks});
  }
}

}  // namespace trainscope::cpu
