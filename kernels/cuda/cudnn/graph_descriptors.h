// A graph as descriptors of cuDNN, and the ways that the library has to compute it on a device.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/op_graph.h"

namespace trainscope::cuda {

// Where a graph is to run: the device of a handle, or one that is only described, for which plans
// can be chosen but not built.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::string description = {};  // JSON of cuDNN's DEVICEPROP
};

// The op graph's descriptor, and those that it refers to.
struct GraphDescriptors {
  std::vector<CudnnDescriptor> parts;
  CudnnDescriptor graph;
  CudnnDescriptor device;  // of a described one
};
GraphDescriptors describe_graph(const OpGraph& graph, const CudnnTarget& target,
                                CudnnFailure& failure);

// An engine with its settings.
struct EngineConfig {
  CudnnDescriptor config;
  CudnnDescriptor engine;
  std::int64_t index = 0;            // of the engine, among all that cuDNN has
  std::vector<std::int32_t> notes;   // each a cudnnBackendNumericalNote_t, or a later cuDNN's
  std::int64_t workspace_bytes = 0;  // 0 too where the library tells them of a plan alone

  bool has(cudnnBackendNumericalNote_t note) const;
};
// Those that cuDNN proposes, the most promising first: by its heuristics, then those that take
// more. Left out are engines whose notes cannot be read. The failure says why there is none: none
// is proposed, or something is broken.
std::vector<EngineConfig> engine_configs(const GraphDescriptors& graph, CudnnFailure& failure);

// Why an engine is not used for operands of this type, with a workspace of at most so many bytes;
// empty: it may be. Left out are those whose sums have no fixed order, that transform numbers
// (Winograd, FFT), or that have a note which this build does not know; for f32 also those that
// multiply or add in less than f32.
std::string why_not_used(const EngineConfig& config, cudnnDataType_t type,
                         std::size_t most_workspace_bytes);

// The plan of a configuration. The failure says what the library refuses.
CudnnDescriptor plan_descriptor(const EngineConfig& config, const GraphDescriptors& graph,
                                const CudnnTarget& target, CudnnFailure& failure);
std::int64_t plan_workspace_bytes(const CudnnDescriptor& plan, CudnnFailure& failure);

}  // namespace trainscope::cuda
