// Devices that a plan can be made for without having one: published figures, and which fraction of
// them programs reach. A DeviceSpec is no Machine: its numbers are peaks that nothing reaches, one
// for each precision of matmuls, beside links and networks that a machine alone does not have. What
// plans weigh time with is a Machine here too: machine_of().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/machine/machine.h"

namespace trainscope {

// Rates are peaks, per second and in one direction.
struct DeviceSpec {
  std::string_view name;
  std::string_view doc;
  std::int64_t memory_bytes = 0;  // what the driver offers, whole GiB
  double flops_f32 = 0.0;
  double flops_tf32 = 0.0;  // dense; 0: the device cannot
  double flops_bf16 = 0.0;
  double flops_fp16 = 0.0;
  double bytes_per_second = 0.0;  // of its own memory
  double link_bytes = 0.0;        // to the other devices of its node
  double network_bytes = 0.0;     // its share of the node's network
  std::int64_t devices_per_node = 8;
};

// In the order in which help shows them.
std::span<const DeviceSpec> world_devices();
// Throws kUsage, naming those that exist.
const DeviceSpec& find_world_device(std::string_view name);

// Numbers of a matmul: f32 as PyTorch's default, its "high" (TF32), or two bytes.
enum class MatmulPrecision : std::uint8_t { kF32, kTf32, kBf16, kFp16 };

// Fractions of the peaks that a plan counts on; the same for every device.
// Matmuls: cuBLAS reaches 0.80 of an H200's bf16 peak on squares of 8192 and 0.61 to 0.71 on the
// shapes of transformers of width 768 to 1024. Memory: reading and writing reaches 0.90 there.
// Links: NCCL's bus bandwidth for large messages is 0.75 to 0.85 of one direction of NVLink.
inline constexpr double kMatmulEfficiency = 0.65;
inline constexpr double kMemoryEfficiency = 0.85;
inline constexpr double kLinkEfficiency = 0.80;
// Of each kernel, whatever its work: what eager launches cost at least.
inline constexpr double kSecondsPerKernel = 5e-6;
// Left to the driver's context, libraries and communication buffers.
inline constexpr std::int64_t kReserveBytes = std::int64_t{1} << 30;

// The device at these efficiencies, all its arithmetic at the rate of the precision; it counts as
// one core. Throws kUsage where the device lacks the precision.
Machine machine_of(const DeviceSpec& device, MatmulPrecision precision);

}  // namespace trainscope
