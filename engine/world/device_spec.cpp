// The table of devices.
#include "engine/world/device_spec.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Peaks: NVIDIA's data sheets "H200 Tensor Core GPU" (2024; its figures of tensor cores are for
// sparse matrices, halved here), "A100 Tensor Core GPU" (2021, SXM) and "V100 Tensor Core GPU"
// (2020, SXM2). NVLink: half of the sheets' totals of both directions (900, 600, 300 GB/s).
// Networks: one 400 Gb/s ConnectX-7 a GPU (DGX H200), one 200 Gb/s ConnectX-6 a GPU (DGX A100),
// four 100 Gb/s ConnectX-4 for eight GPUs (DGX-1), from the user guides of those systems. Memory:
// what drivers report to programs, rounded down (139.8, 79.2, 39.4, 31.7 and 15.7 GiB).
constexpr std::array kDevices = {
    DeviceSpec{.name = "h200",
               .doc = "H200 SXM, 141 GB, 8 in a node",
               .memory_bytes = 139 * kGiB,
               .flops_f32 = 67e12,
               .flops_tf32 = 494.5e12,
               .flops_bf16 = 989e12,
               .flops_fp16 = 989e12,
               .bytes_per_second = 4.8e12,
               .link_bytes = 450e9,
               .network_bytes = 50e9},
    DeviceSpec{.name = "a100-80",
               .doc = "A100 SXM, 80 GB, 8 in a node",
               .memory_bytes = 79 * kGiB,
               .flops_f32 = 19.5e12,
               .flops_tf32 = 156e12,
               .flops_bf16 = 312e12,
               .flops_fp16 = 312e12,
               .bytes_per_second = 2.039e12,
               .link_bytes = 300e9,
               .network_bytes = 25e9},
    DeviceSpec{.name = "a100-40",
               .doc = "A100 SXM, 40 GB, 8 in a node",
               .memory_bytes = 39 * kGiB,
               .flops_f32 = 19.5e12,
               .flops_tf32 = 156e12,
               .flops_bf16 = 312e12,
               .flops_fp16 = 312e12,
               .bytes_per_second = 1.555e12,
               .link_bytes = 300e9,
               .network_bytes = 25e9},
    DeviceSpec{.name = "v100-32",
               .doc = "V100 SXM2, 32 GB, 8 in a node",
               .memory_bytes = 31 * kGiB,
               .flops_f32 = 15.7e12,
               .flops_fp16 = 125e12,
               .bytes_per_second = 0.9e12,
               .link_bytes = 150e9,
               .network_bytes = 6.25e9},
    DeviceSpec{.name = "v100-16",
               .doc = "V100 SXM2, 16 GB, 8 in a node",
               .memory_bytes = 15 * kGiB,
               .flops_f32 = 15.7e12,
               .flops_fp16 = 125e12,
               .bytes_per_second = 0.9e12,
               .link_bytes = 150e9,
               .network_bytes = 6.25e9},
};

// The name of a precision and its peak, 0 where the device lacks it.
std::pair<std::string_view, double> matmul_peak(const DeviceSpec& device,
                                                MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::kF32:
      return {"f32", device.flops_f32};
    case MatmulPrecision::kTf32:
      return {"TF32", device.flops_tf32};
    case MatmulPrecision::kBf16:
      return {"bf16", device.flops_bf16};
    case MatmulPrecision::kFp16:
      return {"fp16", device.flops_fp16};
  }
  return {"?", 0.0};
}

}  // namespace

std::span<const DeviceSpec> world_devices() { return kDevices; }

const DeviceSpec& find_world_device(std::string_view name) {
  const auto found = std::ranges::find(kDevices, name, &DeviceSpec::name);
  if (found != kDevices.end()) return *found;
  std::vector<std::string_view> names;
  for (const DeviceSpec& device : kDevices) names.push_back(device.name);
  throw Error(ErrorCode::kUsage, fmt::format("there is no target '{}'", printable(name)))
      .hint("one of " + join(names, ", "));
}

Machine machine_of(const DeviceSpec& device, MatmulPrecision precision) {
  const auto [name, flops] = matmul_peak(device, precision);
  require(flops > 0.0, ErrorCode::kUsage, "{} has no {}", device.name, name);
  const auto rate = [](double per_second) { return Rate{.one = per_second, .all = per_second}; };
  const Rate bytes = rate(kMemoryEfficiency * device.bytes_per_second);
  return {.name = std::string(device.name),
          .cores = 1,
          .levels = {{.name = "memory",
                      .bytes = device.memory_bytes,
                      .read = bytes,
                      .write = bytes,
                      .copy = bytes}},
          .flops_per_second = {{DType::kF32, rate(kMatmulEfficiency * flops)}},
          .seconds_per_call = kSecondsPerKernel,
          .seconds_per_fork = kSecondsPerKernel};
}

}  // namespace trainscope
