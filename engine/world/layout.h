// How a world of devices divides a training step, and what messages between them cost.
#pragma once

#include <cstdint>

#include "engine/world/device_spec.h"

namespace trainscope {

// Megatron's order of ranks: tensor fastest, then data, then pipeline (Narayanan et al. 2021).
struct Layout {
  std::int64_t world = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  int zero = 0;  // stage of Rajbhandari et al. 2020: 1 states, 2 and gradients, 3 and parameters

  std::int64_t data() const { return world / (tensor * pipeline); }
};

// Throws kUsage for numbers below 1, a world that tensor * pipeline does not divide, and a ZeRO
// stage without data parallelism.
void check_layout(const Layout& layout);

// Devices that exchange something, at equal distances in the order of ranks.
struct Group {
  std::int64_t size = 1;
  double bytes_per_second = 0.0;  // of each member, one direction
};
Group tensor_group(const DeviceSpec& device, const Layout& layout);
Group data_group(const DeviceSpec& device, const Layout& layout);
// Two neighbours of the pipeline.
Group stage_link(const DeviceSpec& device, const Layout& layout);

enum class Collective : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kSend };

// Bytes that each member sends for a message of `bytes` (of the whole tensor): a ring moves
// 2 (n-1)/n of it for an all-reduce, (n-1)/n for the others (Patarasuk and Yuan 2009).
double sent_bytes(Collective collective, std::int64_t bytes, const Group& group);
// Those at the link's rate, and a latency for each level of a tree over the group (NCCL's trees
// since 2.4), twice for an all-reduce.
double collective_seconds(Collective collective, std::int64_t bytes, const Group& group);

// Of one message between two devices.
inline constexpr double kMessageSeconds = 10e-6;

}  // namespace trainscope
