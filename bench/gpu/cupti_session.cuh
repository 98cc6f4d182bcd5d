// CUPTI as the programs of bench/gpu use it: checked calls, and a session that keeps every record
// that CUPTI delivers, as its bytes.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <map>
#include <mutex>

#include "bench/gpu/support.cuh"

namespace trainscope::bench {

inline void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "?";
  cuptiGetResultString(result, &text);
  std::printf("{\"kind\": \"error\", \"what\": \"%s\", \"error\": \"CUPTI %d: %s\"}\n", what,
              static_cast<int>(result), text);
  std::exit(1);
}

// What the callbacks of the library write: they know no object of ours.
struct Delivered {
  std::mutex mutex;
  std::vector<std::vector<std::uint8_t>> buffers;  // their valid bytes
  std::size_t buffer_bytes = std::size_t{1} << 20;
  // Of CUDA graphs: which node a node was made from when its graph was instantiated.
  std::map<std::uint64_t, std::uint64_t> original_of;
  std::vector<std::uint64_t> created;
};

inline Delivered& delivered() {
  static Delivered all;
  return all;
}

inline void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                      std::size_t* most_records) {
  *size = delivered().buffer_bytes;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most_records = 0;
}

inline void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                      std::size_t valid) {
  {
    const std::lock_guard<std::mutex> lock(delivered().mutex);
    delivered().buffers.emplace_back(buffer, buffer + valid);
  }
  std::free(buffer);
}

// Nodes of graphs as they are made and copied.
inline void CUPTIAPI resource_event(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                    const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  const auto* graph = static_cast<const CUpti_GraphData*>(resource->resourceDescriptor);
  std::uint64_t node = 0;
  std::uint64_t original = 0;
  const std::lock_guard<std::mutex> lock(delivered().mutex);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    if (cuptiGetGraphNodeId(graph->node, &node) == CUPTI_SUCCESS)
      delivered().created.push_back(node);
  } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
    if (cuptiGetGraphNodeId(graph->node, &node) == CUPTI_SUCCESS &&
        cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS)
      delivered().original_of[node] = original;
  }
}

// Calls of the runtime that launch work: with external correlation on, only these are recorded.
inline constexpr CUpti_CallbackId kLaunchingCalls[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
};

// Levels of docs/profiling: 0 nothing, 1 device's work, 2 and which call of whom launched it.
// Whole graphs: a record a replay, with none for their nodes.
enum class Level { kOff, kWork, kCalls, kWholeGraphs };

inline const char* name_of(Level level) {
  constexpr const char* kNames[] = {"off", "L1", "L2", "whole graphs"};
  return kNames[static_cast<int>(level)];
}

inline std::vector<CUpti_ActivityKind> kinds_of(Level level) {
  if (level == Level::kOff) return {};
  if (level == Level::kWholeGraphs)
    return {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
  std::vector<CUpti_ActivityKind> kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
  if (level == Level::kCalls) {
    kinds.push_back(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    kinds.push_back(CUPTI_ACTIVITY_KIND_OVERHEAD);
    kinds.push_back(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  }
  return kinds;
}

inline void enable(Level level) {
  for (const CUpti_ActivityKind kind : kinds_of(level))
    check(cuptiActivityEnable(kind), "cuptiActivityEnable");
  if (level == Level::kCalls)
    for (const CUpti_CallbackId call : kLaunchingCalls)
      check(cuptiActivityEnableRuntimeApi(call, 1), "cuptiActivityEnableRuntimeApi");
}

inline void disable(Level level) {
  if (level == Level::kCalls)
    for (const CUpti_CallbackId call : kLaunchingCalls)
      check(cuptiActivityEnableRuntimeApi(call, 0), "cuptiActivityEnableRuntimeApi");
  for (const CUpti_ActivityKind kind : kinds_of(level))
    check(cuptiActivityDisable(kind), "cuptiActivityDisable");
  check(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
}

// Before the first call of CUDA's runtime.
inline void start_session() {
  CUpti_SubscriberHandle subscriber = nullptr;
  check(cuptiSubscribe(&subscriber, resource_event, nullptr), "cuptiSubscribe");
  check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED),
        "callback of nodes");
  check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED),
        "callback of copied nodes");
  check(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed),
        "cuptiActivityRegisterCallbacks");
}

}  // namespace trainscope::bench
