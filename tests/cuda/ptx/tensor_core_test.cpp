// Kernels on tensor cores through their PTX: the emulator's bits, no race, and as many MMAs as the
// tiles need.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/cuda/ptx/interpreted_case.h"

namespace trainscope::test {
namespace {

struct TensorExample {
  std::string_view op;
  std::string_view text;
  DType type;
};

// Several tiles of queries and of keys, ragged; heads of 64, of less, of more; rows that cannot be
// copied by 16 bytes; shared keys; a bias; dropout.
constexpr TensorExample kExamples[] = {
    {"Attention", "[1,140,6,64]; q_heads=2 causal=1 outputs=2", DType::kBF16},
    {"Attention", "[2,70,4,72], [2,67,2,72], [2,67,2,72]; outputs=2", DType::kF16},
    {"Attention", "[1,70,2,27], [1,129,1,27], [1,129,1,27]; outputs=2", DType::kBF16},
    {"Attention",
     "[1,66,2,100], [1,66,2,100], [1,66,2,100], f32[2,1,66], i64[]={3}; causal=1 ratio=0.2 seed=5 "
     "outputs=2",
     DType::kF16},
    {"AttentionGrad",
     "[1,140,2,64], [1,140,2,64], f32[1,2,140,2], [1,140,6,64]; q_heads=2 causal=1", DType::kF16},
    {"AttentionGrad",
     "[2,70,4,72], [2,70,4,72], f32[2,4,70,2], [2,70,4,72], [2,67,2,72], [2,67,2,72]; outputs=3",
     DType::kBF16},
    {"AttentionGrad",
     "[1,70,2,27], [1,70,2,27], f32[1,2,70,2], [1,70,2,27], [1,129,1,27], [1,129,1,27]; outputs=3",
     DType::kBF16},
    {"AttentionGrad",
     "[1,66,2,100], [1,66,2,100], f32[1,2,66,2], [1,66,2,100], [1,66,2,100], [1,66,2,100], "
     "f32[2,1,66], i64[]={3}; causal=1 ratio=0.2 seed=5 outputs=3",
     DType::kBF16},
    {"AttentionGrad",
     "[1,70,4,40], [1,70,4,40], f32[1,4,70,2], [1,70,4,40], [1,131,2,40], [1,131,2,40], -, "
     "i64[]={3}; ratio=0.3 seed=5 outputs=3",
     DType::kF16},
};

ptx::Counters counters_of(ptx::InterpretedKernels& ptx, const KernelCase& each) {
  ptx.machine().counters() = {};
  run_interpreted(ptx, *each.op_case, *each.kernels.front(), {});
  return ptx.machine().counters();
}

}  // namespace

TEST_CASE("ptx tensor cores: attention gives the emulator's bits") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  for (const TensorExample& example : kExamples) {
    INFO(example.op, " \"", example.text, "\" ", name_of(example.type));
    const KernelCase each = kernel_case(example.op, example.text, example.type);
    const Kernel& kernel = *each.kernels.front();
    CHECK(std::string_view(kernel.name).ends_with(".tensor"));
    const RunResult got = run_interpreted(*ptx, *each.op_case, kernel, {});
    for (const std::string& fault : got.faults) FAIL_CHECK(fault);
    CHECK(same_values(got.outputs, run_kernel(*each.op_case, kernel, {}).outputs));
  }
  for (const std::string& race : ptx->machine().races()) FAIL_CHECK("race: ", race);
  ptx->machine().forget_races();
}

// Of 128 queries and 192 keys, 2 heads of 64. An MMA [16, 8, 16] is 4096 FLOPs.
TEST_CASE("ptx tensor cores: attention's MMAs are 4 FLOPs a score and element, its gradient's 14") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  constexpr std::int64_t kElements = std::int64_t{2} * 128 * 192 * 64;
  const ptx::Counters forward = counters_of(
      *ptx, kernel_case("Attention", "[1,128,2,64], [1,192,2,64], [1,192,2,64]; outputs=2",
                        DType::kBF16));
  CHECK(forward.multiplies * 4096 == 4 * kElements);
  const ptx::Counters backward = counters_of(
      *ptx, kernel_case("AttentionGrad",
                        "[1,128,2,64], [1,128,2,64], f32[1,2,128,2], [1,128,2,64], [1,192,2,64], "
                        "[1,192,2,64]; outputs=3",
                        DType::kBF16));
  CHECK(backward.multiplies * 4096 == 14 * kElements);
  for (const ptx::Counters& each : {forward, backward}) {
    CHECK(10 * each.wavefronts <= 11 * each.least_wavefronts);
    // A store of a fragment fills half of each sector that it touches.
    CHECK(4 * each.sectors <= 5 * each.least_sectors);
  }
}

}  // namespace trainscope::test
