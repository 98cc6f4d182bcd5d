// Asks the kernels of an op in the order of preference, up to the first that takes the call.
#include "engine/plan/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"
#include "engine/plan/kernel_call.h"
#include "kernels/api/tf32.h"

namespace trainscope {
namespace {

std::vector<const Kernel*> in_order(const KernelTable& kernels, std::string_view op, DType dtype,
                                    KernelChoice choice) {
  std::vector<const Kernel*> found = kernels.find(op, dtype);
  if (choice == KernelChoice::kReference) std::ranges::reverse(found);
  return found;
}

// Before the others those of the form in TF32, where that is asked for.
std::vector<const Kernel*> asked_in_order(const KernelTable& kernels,
                                          const KernelRequest& request) {
  std::vector<const Kernel*> found = in_order(kernels, request.op, request.dtype, request.choice);
  const std::string_view form = request.tf32 ? tf32_form(request.op) : std::string_view{};
  if (form.empty()) return found;
  const std::vector<const Kernel*> first = in_order(kernels, form, request.dtype, request.choice);
  found.insert(found.begin(), first.begin(), first.end());
  return found;
}

// The list has what is quicker first. Kernels behind the chosen one are not asked whether they
// would take the call: of a library's that costs as much as preparing it.
constexpr std::string_view kLaterInList = "later in the list, which has the preferred kernel first";

// Whether the plan's options leave the kernel to be asked.
Support is_allowed(const Kernel& kernel, KernelChoice choice, SameBits same_bits) {
  if (choice == KernelChoice::kDirect && kernel.transforms) {
    return {"it transforms numbers, which --kernels direct leaves out"};
  }
  const bool any_threads = same_bits == SameBits::kAnyThreads;
  return supported_if(
      !any_threads || kernel.same_for_any_threads,
      "its bits depend on the number of threads, which --deterministic strict leaves out");
}

}  // namespace

std::vector<const Kernel*> kernels_for(const KernelTable& kernels, std::string_view op, DType dtype,
                                       KernelChoice choice) {
  std::vector<const Kernel*> found = in_order(kernels, op, dtype, choice);
  std::erase_if(found, [choice](const Kernel* kernel) {
    return !is_allowed(*kernel, choice, SameBits::kSameThreads);
  });
  return found;
}

KernelChoiceResult choose_kernel(const KernelTable& kernels, const KernelRequest& request) {
  KernelChoiceResult result;
  for (const Kernel* kernel : asked_in_order(kernels, request)) {
    Support support = is_allowed(*kernel, request.choice, request.same_bits);
    const bool behind = result.kernel != nullptr;
    if (support) support = behind ? Support{kLaterInList} : supports(*kernel, request.args);
    if (support) {
      result.kernel = kernel;
      continue;
    }
    std::vector<KernelRefusal>& list = behind ? result.others.behind : result.others.refused;
    list.push_back({.kernel = kernel->name, .why = support.why_not});
  }
  return result;
}

bool computes_tf32(const KernelTable& kernels) {
  return std::ranges::any_of(kTf32Forms, [&kernels](const Tf32Form& each) {
    return !kernels.find(each.form, DType::kF32).empty();
  });
}

std::string refusals_text(const std::vector<KernelRefusal>& refused) {
  std::vector<std::string> texts;
  for (const KernelRefusal& refusal : refused) {
    texts.push_back(fmt::format("{}: {}", refusal.kernel, refusal.why));
  }
  return join(texts, "; ");
}

}  // namespace trainscope
