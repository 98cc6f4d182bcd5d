// The reference models train through the CUDA kernels in the emulator as they do on the CPU.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "engine/exec/backends.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/trained_model.h"

namespace trainscope::test {
namespace {

// The CPU's kernels, and before them those for CUDA: what CUDA's libraries compute has none here.
KernelTable with_cuda_kernels() {
  KernelTable table;
  for (const KernelTable::Row& row : cpu_kernels().rows()) table.add(row.op, row.dtype, row.kernel);
  const KernelTable cuda = cuda::own_kernels();
  for (const KernelTable::Row& row : cuda.rows()) table.add(row.op, row.dtype, row.kernel);
  return table;
}

bool is_cuda(const Kernel& kernel) { return kernel.name.ends_with(".cuda"); }

}  // namespace

TEST_CASE("cuda emulator: reference models take the CPU's steps") {
  std::set<std::string_view> used;
  for (const std::string_view name : {"mlp", "gpt2", "bert", "resnet18", "llama"}) {
    CAPTURE(name);
    TrainedModel want(name, [](CompileOptions&) {});
    TrainedModel got(
        name, [](CompileOptions& options) { options.device = cpu_with(with_cuda_kernels()); });
    std::size_t calls = 0;
    for (const Call& call : got.program().calls) {
      if (call.kernel == nullptr || !is_cuda(*call.kernel)) continue;
      used.insert(call.kernel->name);
      ++calls;
    }
    CHECK(calls > 0);
    REQUIRE(want.losses.size() == got.losses.size());
    for (std::size_t step = 0; step < want.losses.size(); ++step) {
      CHECK(std::abs(got.losses[step] - want.losses[step]) <= 2e-6 * std::abs(want.losses[step]));
    }
  }
  for (const std::string_view kernel : {"add.cuda", "gather_grad.cuda", "gelu_grad.cuda",
                                        "reduce_sum.cuda", "relu_grad.cuda", "mul.cuda"}) {
    CHECK_MESSAGE(used.contains(kernel), kernel, " is not used");
  }
}

}  // namespace trainscope::test
