// The CPU back end's kernel table.
#include "engine/exec/backends.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/support/processor.h"
#include "kernels/cpu/support/threads.h"

namespace trainscope {

const KernelTable& cpu_kernels() {
  static const KernelTable table = cpu::cpu_kernels();
  return table;
}

std::string_view cpu_isa() { return cpu::has_avx512() ? "AVX-512" : "AVX2"; }

void start_cpu_threads(int threads) {
  const std::error_code failure = cpu::start_threads(threads);
  if (!failure) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot start {} threads: {}", threads, failure.message()))
      .hint("--threads 1, or a higher limit of threads (`ulimit -u`, or the cgroup's pids.max)");
}

}  // namespace trainscope
