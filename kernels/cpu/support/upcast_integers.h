// A kernel for i64 as one on integers of 8 to 32 bits: inputs become i64 copies in the workspace,
// outputs keep the low bits of such copies. What wraps around in 64 bits wraps around in fewer
// then, and quotients, comparisons and extremes are those of the numbers (docs/adr/0011).
#pragma once

#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

Support supports_upcast_integers(const Kernel& base, const PrepareArgs& args);
Prepared prepare_upcast_integers(const Kernel& base, const PrepareArgs& args);
void run_upcast_integers(const Kernel& base, const RunArgs& run);

// Adds `kBase`, a kernel for i64, as that of the op for each narrower integer.
template <const Kernel& kBase>
void add_upcast_integers(KernelTable& table, std::string_view op, std::string_view name) {
  const Kernel kernel{
      .name = name,
      .supports = [](const PrepareArgs& args) { return supports_upcast_integers(kBase, args); },
      .prepare = [](const PrepareArgs& args) { return prepare_upcast_integers(kBase, args); },
      .run = [](const RunArgs& run) { run_upcast_integers(kBase, run); }};
  for (DType dtype : kAllDTypes) {
    if (is_narrow_integer(dtype)) table.add(op, dtype, kernel);
  }
}

}  // namespace trainscope::cpu
