// Which cuDNN a process of these tests uses: the simulated one, or NVIDIA's with devices that are
// only described.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kernels/cuda/cudnn/graph_descriptors.h"

namespace trainscope::test {

// The suite "long" is NVIDIA's library, all else the simulated one: a process has one of them.
// Empty where it is loaded, else why not.
std::string load_simulated_cudnn();
// A driver's stub goes before it, which NVIDIA's library asks for on the way to a plan.
std::string load_real_cudnn();
// Whether there is a file of it; a line says where not.
bool has_real_cudnn();

inline constexpr std::array<std::string_view, 2> kDescribedDevices = {"h200", "a100"};
cuda::CudnnTarget described_device(std::string_view name);

}  // namespace trainscope::test
