// Builds the CPU kernel table from the families listed in families.def.
#include "kernels/cpu/cpu_kernels.h"

#include "kernels/cpu/support/parallel_parts.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

#define FAMILY(name) void add_##name(KernelTable& table);
#include "kernels/cpu/families.def"
#undef FAMILY

namespace {

void fork(int parts, void* context, void (*body)(void* context, int part)) {
  parallel_parts(parts, parts, [&](std::int64_t part) { body(context, static_cast<int>(part)); });
}

}  // namespace

KernelTable cpu_kernels() {
  limit_onednn();
  KernelTable table;
  table.set_fork(fork);
#define FAMILY(name) add_##name(table);
#include "kernels/cpu/families.def"
#undef FAMILY
  return table;
}

}  // namespace trainscope::cpu
