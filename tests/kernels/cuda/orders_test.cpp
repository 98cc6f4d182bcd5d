// The CUDA kernels in the emulator in eight orders of threads and blocks, each on an example of two
// blocks or more and in every type of its elements.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "kernels/cuda/emulator/emulator.h"
#include "tests/cuda/races/cases.h"

namespace trainscope::test {

// In the entry kernels_cuda_emulator.long, as the op suite's examples.
TEST_SUITE("long") {
  TEST_CASE("cuda emulator: bits of several blocks do not depend on their order") {
    constexpr std::uint64_t kOrders = 8;
    const RaceCases cases;
    for (const RaceCase& each : cases.one_for_each_kernel()) {
      INFO(each.name(), ", ", each.kernel->name);
      const RunResult first = run_kernel(*each.op_case, *each.kernel, {.poison = 0xFF});
      for (const std::string& fault : first.faults) FAIL_CHECK(fault);
      for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
        cuda::emulator::set_seed(seed);
        const RunResult again = run_kernel(*each.op_case, *each.kernel, {.poison = 0xA5});
        CHECK_MESSAGE(same_bytes(first.outputs, again.outputs), "seed ", seed);
      }
      cuda::emulator::set_seed(0);
    }
  }
}

}  // namespace trainscope::test
