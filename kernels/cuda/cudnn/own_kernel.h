// The kernel that computes a call without cuDNN: for operands that do not lie as it asks.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Where operands lie is known only when a call runs, so that both are prepared.
class OwnKernel {
 public:
  OwnKernel(std::string_view op, DType dtype, const PrepareArgs& args);

  std::size_t workspace_bytes() const { return prepared_.workspace_bytes; }
  void run(const RunArgs& args) const;

 private:
  const Kernel* kernel_ = nullptr;  // null: none takes the call
  Prepared prepared_;
};

}  // namespace trainscope::cuda
