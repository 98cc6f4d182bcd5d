// Copies between the arenas of a program.
#include <cstddef>
#include <cstring>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kGrainBytes = kElementGrain * std::int64_t{sizeof(float)};

void run_copy(const RunArgs& run) {
  const auto* from = run.inputs[0].as<const std::byte>();
  auto* to = run.outputs[0].as<std::byte>();
  const auto bytes = static_cast<std::int64_t>(run.inputs[0].type.bytes());
  parallel_for(run.threads, bytes, kGrainBytes, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

void add_transfer(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("Offload", dtype, {.name = "offload", .run = run_copy});
    table.add("Fetch", dtype, {.name = "fetch", .run = run_copy});
  }
}

}  // namespace trainscope::cpu
