// The CPU back end's kernel table.
#include "engine/exec/backends.h"

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/processor.h"

namespace trainscope {

const KernelTable& cpu_kernels() {
  static const KernelTable table = cpu::cpu_kernels();
  return table;
}

std::string_view cpu_isa() { return cpu::has_avx512() ? "AVX-512" : "AVX2"; }

}  // namespace trainscope
