// Bits under another type.
#include <cstring>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

void run_bit_cast(const RunArgs& run) {
  const std::size_t size = size_of(run.inputs[0].type.dtype);
  const auto* x = run.inputs[0].as<const std::byte>();
  auto* y = run.outputs[0].as<std::byte>();
  parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
               [=](std::int64_t begin, std::int64_t end) {
                 const std::size_t at = static_cast<std::size_t>(begin) * size;
                 std::memcpy(y + at, x + at, static_cast<std::size_t>(end - begin) * size);
               });
}

}  // namespace

void add_bit_cast(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("BitCast", dtype, {.name = "bit_cast", .run = run_bit_cast});
  }
}

}  // namespace trainscope::cpu
