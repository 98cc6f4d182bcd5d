// Devices, groups and the price of messages.
#include "engine/world/layout.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {

TEST_CASE("device: an unknown target is refused with those that exist") {
  const std::string refusal = refusal_of([] { find_world_device("h100"); });
  CHECK(contains(refusal, "'h100'"));
  for (const DeviceSpec& device : world_devices()) CHECK(contains(refusal, device.name));
}

TEST_CASE("device: a precision only where the device has it") {
  const DeviceSpec& volta = find_world_device("v100-16");
  CHECK(contains(refusal_of([&] { machine_of(volta, MatmulPrecision::kTf32); }), "TF32"));
  CHECK(contains(refusal_of([&] { machine_of(volta, MatmulPrecision::kBf16); }), "bf16"));
  CHECK(machine_of(volta, MatmulPrecision::kFp16).flops(DType::kF32).all >
        machine_of(volta, MatmulPrecision::kF32).flops(DType::kF32).all);
  const DeviceSpec& hopper = find_world_device("h200");
  CHECK(machine_of(hopper, MatmulPrecision::kTf32).flops(DType::kF32).all >
        machine_of(hopper, MatmulPrecision::kF32).flops(DType::kF32).all);
}

TEST_CASE("layout: what cannot be divided is refused") {
  const auto refused = [](const Layout& layout, std::string_view text) {
    const std::optional<Error> error = error_of([&] { check_layout(layout); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kUsage);
    CHECK(contains(error->message(), text));
  };
  refused({.world = 0}, "--world is 0");
  refused({.tensor = 0}, "--tensor-parallel is 0");
  refused({.pipeline = -1}, "--pipeline is -1");
  refused({.world = 8, .zero = 4}, "--zero is 4");
  refused({.world = 8, .tensor = 3}, "must be a multiple");
  refused({.world = 8, .tensor = 4, .pipeline = 4}, "must be a multiple");
  refused({.world = 8, .tensor = 8, .zero = 1}, "--zero 1");
  refused({.world = 1, .zero = 3}, "--zero 3");
  check_layout({.world = 16, .tensor = 2, .pipeline = 4, .zero = 3});
}

TEST_CASE("collectives: a ring's bytes") {
  const Group four{.size = 4, .bytes_per_second = 1e9};
  CHECK(sent_bytes(Collective::kAllReduce, 1000, four) == 1500.0);
  CHECK(sent_bytes(Collective::kReduceScatter, 1000, four) == 750.0);
  CHECK(sent_bytes(Collective::kAllGather, 1000, four) == 750.0);
  CHECK(sent_bytes(Collective::kSend, 1000, {.size = 2}) == 1000.0);
  CHECK(sent_bytes(Collective::kAllReduce, 1000, {.size = 1}) == 0.0);
  CHECK(collective_seconds(Collective::kAllReduce, 1 << 20, {.size = 1}) == 0.0);
  // Two levels of a tree over four, up and down; a microsecond for each 1000 bytes.
  CHECK(collective_seconds(Collective::kAllReduce, 1000, four) ==
        doctest::Approx(4 * kMessageSeconds + 1.5e-6));
}

TEST_CASE("groups: links within a node, the network between nodes") {
  const DeviceSpec& device = find_world_device("a100-40");
  const auto rate = [](const Group& group) { return group.bytes_per_second / kLinkEfficiency; };
  CHECK(rate(data_group(device, {.world = 8})) == device.link_bytes);
  // All eight of a node are in one ring: they bring eight network cards.
  CHECK(rate(data_group(device, {.world = 16})) == 8 * device.network_bytes);
  CHECK(rate(tensor_group(device, {.world = 64, .tensor = 8})) == device.link_bytes);
  CHECK(rate(data_group(device, {.world = 64, .tensor = 8})) == device.network_bytes);
  CHECK(rate(data_group(device, {.world = 64, .tensor = 4})) == 2 * device.network_bytes);
  CHECK(rate(stage_link(device, {.world = 8, .pipeline = 4})) == device.link_bytes);
  CHECK(rate(stage_link(device, {.world = 16, .pipeline = 4})) == device.network_bytes);
}

}  // namespace trainscope::test
