// Copies between the arenas of a program, and of bits that get another type.
#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"

namespace trainscope::cuda {
namespace {

void run_copy(const RunArgs& run) {
  if (run.inputs[0].data == run.outputs[0].data) return;
  copy_bytes(run.call, run.outputs[0].data, run.inputs[0].data, run.inputs[0].type.bytes());
}

}  // namespace

void add_transfer(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("Offload", dtype, {.name = "offload.cuda", .run = run_copy});
    table.add("Fetch", dtype, {.name = "fetch.cuda", .run = run_copy});
    table.add("BitCast", dtype, {.name = "bit_cast.cuda", .run = run_copy});
  }
}

}  // namespace trainscope::cuda
