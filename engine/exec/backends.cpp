// The CPU back end's kernel table.
#include "engine/exec/backends.h"

#include "kernels/cpu/cpu_kernels.h"

namespace trainscope {

const KernelTable& cpu_kernels() {
  static const KernelTable table = cpu::cpu_kernels();
  return table;
}

}  // namespace trainscope
