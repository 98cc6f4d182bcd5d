// Asks the kernels of this library alone.
#include "kernels/cuda/cudnn/own_kernel.h"

#include "kernels/cuda/own_kernels.h"

namespace trainscope::cuda {

OwnKernel::OwnKernel(std::string_view op, DType dtype, const PrepareArgs& args) {
  static const KernelTable table = own_kernels();
  PrepareArgs asked = args;
  for (const Kernel* kernel : table.find(op, dtype)) {
    asked.context = kernel->context;
    if (kernel->supports != nullptr && !kernel->supports(asked)) continue;
    kernel_ = kernel;
    if (kernel->prepare != nullptr) prepared_ = kernel->prepare(asked);
    return;
  }
}

void OwnKernel::run(const RunArgs& args) const {
  if (kernel_ == nullptr) {
    return args.call.fail(DeviceStatus::Code::kFailed,
                          "operands do not lie at multiples of 16 bytes, which cuDNN does not "
                          "take, and no other kernel takes the call");
  }
  RunArgs own = args;
  own.state = prepared_.state.get();
  kernel_->run(own);
}

}  // namespace trainscope::cuda
