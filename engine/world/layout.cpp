// Groups of ranks and the alpha-beta model of collectives.
#include "engine/world/layout.h"

#include <algorithm>
#include <bit>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// Members of a group at this distance that sit in one node, for a group of this size.
Group group_at(const DeviceSpec& device, std::int64_t size, std::int64_t distance) {
  const std::int64_t in_node = std::max<std::int64_t>(1, device.devices_per_node / distance);
  if (size <= in_node) {
    return {.size = size, .bytes_per_second = kLinkEfficiency * device.link_bytes};
  }
  // A ring leaves each node once, over the network cards of all its members there; within the
  // node it is no faster than the links.
  const double network = static_cast<double>(in_node) * device.network_bytes;
  return {.size = size, .bytes_per_second = kLinkEfficiency * std::min(network, device.link_bytes)};
}

}  // namespace

void check_layout(const Layout& layout) {
  require(layout.world >= 1, ErrorCode::kUsage, "--world is {}: a world has 1 device at least",
          layout.world);
  require(layout.tensor >= 1, ErrorCode::kUsage, "--tensor-parallel is {}, expected 1 or more",
          layout.tensor);
  require(layout.pipeline >= 1, ErrorCode::kUsage, "--pipeline is {}, expected 1 or more",
          layout.pipeline);
  require(layout.zero >= 0 && layout.zero <= 3, ErrorCode::kUsage,
          "--zero is {}, expected 0, 1, 2 or 3", layout.zero);
  const bool divides = layout.tensor <= layout.world / layout.pipeline &&
                       layout.world % (layout.tensor * layout.pipeline) == 0;
  require(divides, ErrorCode::kUsage,
          "--world {} cannot be divided by --tensor-parallel {} times --pipeline {}: it must be a "
          "multiple",
          layout.world, layout.tensor, layout.pipeline);
  if (layout.zero > 0 && layout.data() == 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--zero {} shards over data-parallel devices, and --world {} has "
                            "one",
                            layout.zero, layout.world))
        .hint("a larger --world, or --zero 0");
  }
}

Group tensor_group(const DeviceSpec& device, const Layout& layout) {
  return group_at(device, layout.tensor, 1);
}

Group data_group(const DeviceSpec& device, const Layout& layout) {
  return group_at(device, layout.data(), layout.tensor);
}

Group stage_link(const DeviceSpec& device, const Layout& layout) {
  const std::int64_t distance = layout.tensor * layout.data();
  const bool in_node = distance * layout.pipeline <= device.devices_per_node;
  return {
      .size = 2,
      .bytes_per_second = kLinkEfficiency * (in_node ? device.link_bytes : device.network_bytes)};
}

double sent_bytes(Collective collective, std::int64_t bytes, const Group& group) {
  if (group.size <= 1) return 0.0;
  const auto whole = static_cast<double>(bytes);
  const auto n = static_cast<double>(group.size);
  switch (collective) {
    case Collective::kAllReduce:
      return 2.0 * (n - 1.0) / n * whole;
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return (n - 1.0) / n * whole;
    case Collective::kSend:
      return whole;
  }
  return 0.0;
}

double collective_seconds(Collective collective, std::int64_t bytes, const Group& group) {
  if (group.size <= 1) return 0.0;
  const auto levels = std::bit_width(static_cast<std::uint64_t>(group.size - 1));
  const double ways = collective == Collective::kAllReduce ? 2.0 : 1.0;
  return ways * static_cast<double>(levels) * kMessageSeconds +
         sent_bytes(collective, bytes, group) / group.bytes_per_second;
}

}  // namespace trainscope
