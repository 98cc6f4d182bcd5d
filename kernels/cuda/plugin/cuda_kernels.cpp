// Own kernels and those of NVIDIA's libraries in one table.
#include "kernels/cuda/plugin/cuda_kernels.h"

#include "kernels/cuda/gemm/matmul.h"
#include "kernels/cuda/own_kernels.h"
#ifdef TRAINSCOPE_HAS_CUDNN
#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/cudnn/cudnn_kernels.h"
#endif

namespace trainscope::cuda {

KernelTable cuda_kernels() {
  KernelTable table = own_kernels();
  add_matmul(table);
#ifdef TRAINSCOPE_HAS_CUDNN
  if (load_cudnn().empty()) add_cudnn_kernels(table);
#endif
  return table;
}

}  // namespace trainscope::cuda
