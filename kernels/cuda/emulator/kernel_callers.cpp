// What launch() adds to before main() begins.
#include "kernels/cuda/emulator/emulator.h"

namespace trainscope::cuda::emulator {

std::vector<KernelCaller>& kernel_callers() {
  static std::vector<KernelCaller> callers;
  return callers;
}

}  // namespace trainscope::cuda::emulator
