// Own kernels and those of NVIDIA's libraries in one table.
#include "kernels/cuda/plugin/cuda_kernels.h"

#include "kernels/cuda/gemm/matmul.h"
#include "kernels/cuda/own_kernels.h"

namespace trainscope::cuda {

KernelTable cuda_kernels() {
  KernelTable table = own_kernels();
  add_matmul(table);
  return table;
}

}  // namespace trainscope::cuda
