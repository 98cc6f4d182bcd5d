// Which kernel computes a call: the first of the table's that may and can, and why no other one
// does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope {

// kDirect: the fastest of those that compute each product of the definition (no Winograd).
enum class KernelChoice : std::uint8_t { kFastest, kDirect, kReference };

// The same bits on every run with as many threads, or with any number of them.
enum class SameBits : std::uint8_t { kSameThreads, kAnyThreads };

// The kernels for an op, the preferred one first. With kDirect none that transforms.
std::vector<const Kernel*> kernels_for(const KernelTable& kernels, std::string_view op, DType dtype,
                                       KernelChoice choice);

// A call that needs a kernel, by the op's name and kernel dtype.
struct KernelRequest {
  std::string_view op;
  DType dtype = DType::kF32;
  PrepareArgs args;
  KernelChoice choice = KernelChoice::kFastest;
  SameBits same_bits = SameBits::kSameThreads;
  // Kernels of the op's form in TF32 (kernels/api/tf32.h) come before its own.
  bool tf32 = false;
};

// A kernel that is not used. Both texts live as long as the table.
struct KernelRefusal {
  std::string_view kernel;
  std::string_view why;
};

// The kernels for a call that another one computes, in the order of preference.
struct OtherKernels {
  std::vector<KernelRefusal> refused = {};  // asked before it
  std::vector<KernelRefusal> behind = {};   // come after it, and are not asked
};

struct KernelChoiceResult {
  const Kernel* kernel = nullptr;  // null: no kernel takes the call
  OtherKernels others = {};
};

KernelChoiceResult choose_kernel(const KernelTable& kernels, const KernelRequest& request);

// Whether there is a kernel of a form in TF32.
bool computes_tf32(const KernelTable& kernels);

// "matmul.own: no AVX512_BF16 on this processor; ...".
std::string refusals_text(const std::vector<KernelRefusal>& refused);

}  // namespace trainscope
