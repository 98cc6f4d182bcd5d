// Kernel and pass choice for verify and gradients.
#include "cli/check_flags.h"

namespace trainscope {

std::span<const Flag> check_flags() {
  static constexpr Flag kFlags[] = {
      {.name = "disable", .type = FlagType::kTexts, .value = "PASS", .help = "Leave out a pass"},
      {.name = "kernels",
       .type = FlagType::kChoice,
       .value = "fastest|reference",
       .fallback = "fastest",
       .help = "reference: the plain kernels that the others are tested against"}};
  return kFlags;
}

LowerOptions lower_options(const Invocation& invocation) {
  LowerOptions options;
  options.threads = invocation.threads();
  const bool reference = invocation.settings().text("kernels") == "reference";
  options.kernels = reference ? KernelChoice::kReference : KernelChoice::kFastest;
  return options;
}

PassOptions pass_options(const Invocation& invocation) {
  return {.disabled = invocation.settings().texts("disable"), .stop_after = {}};
}

}  // namespace trainscope
