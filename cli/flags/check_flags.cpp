// Kernel and pass choice for verify and gradients.
#include "cli/flags/check_flags.h"

#include "cli/flags/training_flags.h"

namespace trainscope {

std::vector<Flag> check_flags() {
  static constexpr Flag kKernelFlags[] = {
      {.name = "disable",
       .type = FlagType::kTexts,
       .value = "PASS",
       .help = "Leave out a pass, or order, recompute or batch_tiles"}};
  return join_flags({kKernelFlags, kernel_flags()});
}

LowerOptions lower_options(const Invocation& invocation) {
  LowerOptions options;
  options.threads = invocation.threads();
  options.kernels = kernel_choice(invocation.settings());
  return options;
}

PassOptions pass_options(const Invocation& invocation) {
  return {.disabled = disabled_passes(invocation.settings()), .stop_after = {}};
}

}  // namespace trainscope
