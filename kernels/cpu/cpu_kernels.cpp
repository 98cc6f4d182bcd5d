// Builds the CPU kernel table from the families listed in families.def.
#include "kernels/cpu/cpu_kernels.h"

#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

#define FAMILY(name) void add_##name(KernelTable& table);
#include "kernels/cpu/families.def"
#undef FAMILY

KernelTable cpu_kernels() {
  limit_onednn();
  KernelTable table;
#define FAMILY(name) add_##name(table);
#include "kernels/cpu/families.def"
#undef FAMILY
  return table;
}

}  // namespace trainscope::cpu
