// What the CUDA driver of this machine says, asked at run time: no CUDA headers, no linking.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

// The CUDA that device code of this project needs, as drivers count: 13.0.
inline constexpr int kLeastCudaVersion = 13000;

struct CudaDriver {
  // 12040 for a driver that knows CUDA 12.4; none when there is no driver, or one that does not
  // even start.
  std::optional<int> version;
  std::vector<std::string> devices;  // names
  // Why no device can be used, as far as the driver is concerned; empty when one can.
  std::string problem;
};

// Loads libcuda.so.1 and asks it. The driver stays loaded until the process ends.
CudaDriver find_cuda_driver();

// The name of the GPU that "cuda:1" means, as the driver has it; empty for "cpu", and where the
// driver has no such device.
std::string device_name_of(std::string_view device, const CudaDriver& driver);

// "12.4" for 12040.
std::string cuda_version_text(int version);

}  // namespace trainscope
