// CUDA graphs: instantiated once, launched often.
#include "kernels/cuda/device/captured_graph.h"

#include "kernels/cuda/device/cuda_error.h"

namespace trainscope::cuda {

std::unique_ptr<CapturedGraph> CapturedGraph::instantiate(cudaGraph_t graph, DeviceStatus* status) {
  cudaGraphExec_t ready = nullptr;
  *status = status_of(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  (void)cudaGraphDestroy(graph);
  if (!status->done()) return nullptr;
  return std::unique_ptr<CapturedGraph>(new CapturedGraph(ready));
}

CapturedGraph::~CapturedGraph() { (void)cudaGraphExecDestroy(ready_); }

}  // namespace trainscope::cuda
