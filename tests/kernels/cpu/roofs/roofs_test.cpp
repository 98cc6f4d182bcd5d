// What the roofs of this machine cannot be; never how quick it is.
#include "kernels/cpu/roofs/roofs.h"

#include <doctest/doctest.h>

#include <cmath>

#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {
namespace {

void check_rate(const Rate& rate) {
  CHECK(std::isfinite(rate.one));
  CHECK(rate.one > 1e6);
  CHECK(rate.all > 1e6);
}

}  // namespace

TEST_CASE("roofs: positive, of every level and dtype, the nearest cache not slower than memory") {
  constexpr double kGenerous = 4.0;  // other programs run too
  for (int threads : {1, 2}) {
    const Machine machine = measure_machine(
        {.threads = threads, .seconds = 0.002, .most_bytes = std::size_t{64} << 20});
    CHECK(machine.cores == threads);
    REQUIRE(machine.levels.size() >= 2);
    CHECK(machine.levels.front().name == "L1");
    CHECK(machine.memory().name == "memory");
    std::int64_t before = 0;
    for (const MemoryLevel& level : machine.levels) {
      CAPTURE(level.name);
      CHECK(level.bytes >= before);
      before = level.bytes;
      REQUIRE(level.update);
      for (const Rate& rate : {level.read, level.write, level.copy, *level.update}) {
        check_rate(rate);
      }
      CHECK(level.in_place() == *level.update);
    }
    const MemoryLevel& nearest = machine.levels.front();
    CHECK(kGenerous * nearest.read.one > machine.memory().read.one);
    CHECK(kGenerous * nearest.copy.one > machine.memory().copy.one);
    CHECK(kGenerous * nearest.update->one > machine.memory().update->one);
    REQUIRE(machine.flops_per_second.contains(DType::kF32));
    REQUIRE(machine.flops_per_second.contains(DType::kF64));
    CHECK(machine.flops_per_second.contains(DType::kBF16) == has_avx512_bf16());
    for (const auto& [dtype, rate] : machine.flops_per_second) check_rate(rate);
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI8}) {
      const auto why = machine.without_flops.find(dtype);
      CHECK(machine.flops_per_second.contains(dtype) == (why == machine.without_flops.end()));
      if (why != machine.without_flops.end()) CHECK(!why->second.empty());
    }
    CHECK(machine.host_link.bytes_per_second == machine.memory().copy.one / 2);
    CHECK(machine.seconds_per_call > 0.0);
    CHECK(machine.seconds_per_fork > 0.0);
    if (threads == 1) CHECK(machine.flops(DType::kF32).one == machine.flops(DType::kF32).all);
  }
}

}  // namespace trainscope::cpu
