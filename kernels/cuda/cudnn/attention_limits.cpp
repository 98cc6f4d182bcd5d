// What is known of versions of cuDNN, by reports that name it.
#include "kernels/cuda/cudnn/attention_limits.h"

#include <cuda_runtime.h>

#include <vector>

#include "kernels/cuda/cudnn/cudnn.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kLeastVersion = 91600;
// What the mask of the last tile's keys is to be mended in (cudnn-frontend#628).
constexpr std::size_t kMendedMask = 92600;
// GPUs from here on have other kernels, of which the form of the gradient that keeps gradients of
// scores is not known to be deterministic.
constexpr int kOtherKernels = 10;
constexpr std::int64_t kLeastOrderedKvHeads = 8;  // there, of the forward graph

// Of all devices: to ask for a device's properties takes long.
std::vector<int> major_capabilities() {
  int count = 0;
  (void)cudaGetDeviceCount(&count);
  std::vector<int> majors;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties = {};
    (void)cudaGetDeviceProperties(&properties, device);
    majors.push_back(properties.major);
  }
  return majors;
}

}  // namespace

CudnnPlace current_place() {
  static const std::vector<int> majors = major_capabilities();
  int device = 0;
  (void)cudaGetDevice(&device);
  const auto number = static_cast<std::size_t>(device);
  return {.version = cudnn().version(),
          .major_capability = number < majors.size() ? majors[number] : 0};
}

std::string_view why_not_attention(const AttentionShape& shape, const CudnnPlace& place) {
  if (place.version < kLeastVersion) return "attention needs cuDNN 9.16";
  if (place.major_capability >= kOtherKernels && shape.kv_heads < kLeastOrderedKvHeads) {
    return "sums of fewer than 8 heads of keys may have no fixed order on this GPU";
  }
  return {};
}

// A row whose scores are all far below 0 has so small a sum of exp(score) that exp(0) by that sum
// is beyond f32: where a key behind the last one counts as a score of 0, not as masked, its weight
// is infinite, and 0 times that is NaN. That was reported of 64 keys in the last tile of 128 on
// GPUs of 9.0 (pytorch#196678), not under a causal mask; of one query, with 9.26 too
// (cudnn-frontend#1072).
std::string_view why_not_attention_grad(const AttentionShape& shape, const CudnnPlace& place) {
  if (place.version < kLeastVersion) return "attention needs cuDNN 9.16";
  if (place.major_capability >= kOtherKernels) return "sums may have no fixed order on this GPU";
  if (shape.tokens == 1) return "gradients of one query can be NaN";
  if (shape.keys == 1) return "cuDNN documents no gradients of one key";
  if (!shape.causal && shape.keys % 128 == 64 && place.version < kMendedMask) {
    return "gradients of keys that fill half of a tile of 128 can be NaN before cuDNN 9.26";
  }
  return {};
}

}  // namespace trainscope::cuda
