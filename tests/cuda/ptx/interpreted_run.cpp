// Lets a kernel run through the interpreter, with its operands as the only memory.
#include "tests/cuda/ptx/interpreted_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

namespace trainscope::test {
namespace {

// Of the call that runs: kernels are plain functions.
struct Watch {
  ptx::InterpretedKernels& kernels;
  const Kernel& kernel;
  std::size_t workspace_bytes = 0;
};
thread_local Watch* watch = nullptr;

Prepared prepare_watched(const PrepareArgs& args) {
  Prepared prepared = watch->kernel.prepare(args);
  watch->workspace_bytes = prepared.workspace_bytes;
  return prepared;
}

void run_watched(const RunArgs& run) {
  ptx::GlobalMemory& memory = watch->kernels.machine().memory();
  memory.forbid_all();
  for (const std::span<const TensorView> views : {run.inputs, run.outputs}) {
    for (const TensorView& view : views) {
      if (view.present) memory.allow(view.data, view.type.bytes());
    }
  }
  memory.allow(run.workspace, watch->workspace_bytes);
  watch->kernel.run(run);
}

class TakenOver {
 public:
  TakenOver(ptx::InterpretedKernels& kernels, Watch& of_call) {
    watch = &of_call;
    kernels.take_over();
  }
  ~TakenOver() {
    watch = nullptr;
    ptx::InterpretedKernels::done();
  }
  TakenOver(const TakenOver&) = delete;
};

bool same_values(const Tensor& a, const Tensor& b) {
  if (same_bytes(a, b)) return true;
  if (a.type() != b.type() || !is_float(a.dtype())) return false;
  const Tensor x = convert(a, DType::kF64);
  const Tensor y = convert(b, DType::kF64);
  return std::equal(x.values<double>().begin(), x.values<double>().end(),
                    y.values<double>().begin(), [](double v, double w) {
                      if (std::isnan(v)) return std::isnan(w);
                      return std::memcmp(&v, &w, sizeof v) == 0;
                    });
}

}  // namespace

RunResult run_interpreted(ptx::InterpretedKernels& kernels, const OpCase& op_case,
                          const Kernel& kernel, const RunOptions& options) {
  Watch of_call{.kernels = kernels, .kernel = kernel};
  Kernel watched = kernel;
  if (kernel.prepare != nullptr) watched.prepare = prepare_watched;
  watched.run = run_watched;
  const TakenOver taken_over(kernels, of_call);
  return run_kernel(op_case, watched, options);
}

bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return same_values(x, y); });
}

}  // namespace trainscope::test
