// A list of work as a CUDA graph that is ready to be launched.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "kernels/api/device.h"

namespace trainscope::cuda {

class CapturedGraph final : public CapturedWork {
 public:
  // Takes the graph over. Null, with a status that says why, where CUDA cannot make it ready.
  static std::unique_ptr<CapturedGraph> instantiate(cudaGraph_t graph, DeviceStatus* status);
  ~CapturedGraph() override;

  cudaError_t launch(cudaStream_t stream) const { return cudaGraphLaunch(ready_, stream); }

 private:
  explicit CapturedGraph(cudaGraphExec_t ready) : ready_(ready) {}

  cudaGraphExec_t ready_;
};

}  // namespace trainscope::cuda
