// What the PTX of kernels moves: bytes as the cost model or the kernel's own comment has it, no
// more sectors and passes over banks than that takes.
#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

#include "engine/ir/op_def.h"
#include "tests/cuda/ptx/interpreted_case.h"

namespace trainscope::test {
namespace {

struct Traffic {
  std::string_view op;
  std::string_view text;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

ptx::Counters counted(ptx::InterpretedKernels& ptx, const KernelCase& each) {
  ptx.machine().counters() = {};
  run_interpreted(ptx, *each.op_case, *each.kernels.front(), {});
  return ptx.machine().counters();
}

}  // namespace

TEST_CASE("ptx counters: streaming kernels move what the cost model says, in whole sectors") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  constexpr Traffic kStreaming[] = {
      {"Add", "[64,256], [64,256]"},
      {"Mul", "[64,256], [64,256]"},
      {"Relu", "[64,256]"},
      {"Gelu", "[64,256]"},
      {"GeluGrad", "[64,256], [64,256]"},
      {"Exp", "[64,256]"},
      {"Tanh", "[64,256]"},
      {"Sub", "[33,37], [33,37]"},
      {"Where", "bool[64,256], [64,256], [64,256]"},
      {"Transpose", "[64,96]; perm={1,0}"},
  };
  for (const Traffic& each : kStreaming) {
    CAPTURE(each.op);
    const KernelCase one = kernel_case(each.op, each.text);
    const ptx::Counters counters = counted(*ptx, one);
    const Cost cost = cost_of(one.op_case->row(), one.op_case->args());
    CHECK(counters.bytes_read == cost.bytes_read);
    CHECK(counters.bytes_written == cost.bytes_written);
    CHECK(20 * counters.sectors <= 21 * counters.least_sectors);
    CHECK(10 * counters.wavefronts <= 11 * counters.least_wavefronts);
  }
}

TEST_CASE("ptx counters: kernels that read again move what their formula says") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kRow = 256 * 4;   // bytes
  constexpr std::int64_t kShift = 32 * 4;  // each lane of the row's warp reads its first element
  constexpr Traffic kAgain[] = {
      // For the maximum, for the sum, for the result.
      {"Softmax", "[8,256]", kRows * 3 * kRow, kRows * kRow},
      // dy and y, for the sum and for the result.
      {"SoftmaxGrad", "[8,256], [8,256]", kRows * 4 * kRow, kRows * kRow},
      // For the statistics and for the result, which takes scale and bias.
      {"LayerNormalization", "[8,256], [256], [256]", kRows * (4 * kRow + kShift), kRows * kRow},
  };
  for (const Traffic& each : kAgain) {
    CAPTURE(each.op);
    const ptx::Counters counters = counted(*ptx, kernel_case(each.op, each.text));
    CHECK(counters.bytes_read == each.bytes_read);
    CHECK(counters.bytes_written == each.bytes_written);
  }
}

}  // namespace trainscope::test
