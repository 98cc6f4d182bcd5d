// Builds the table of kernels from the families listed in families.def.
#include "kernels/cuda/own_kernels.h"

namespace trainscope::cuda {

#define FAMILY(name) void add_##name(KernelTable& table);
#include "kernels/cuda/families.def"
#undef FAMILY

KernelTable own_kernels() {
  KernelTable table;
#define FAMILY(name) add_##name(table);
#include "kernels/cuda/families.def"
#undef FAMILY
  return table;
}

}  // namespace trainscope::cuda
