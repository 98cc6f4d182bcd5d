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

// Calls that launch work, of the runtime and of the driver.
inline constexpr CUpti_CallbackId kRuntimeLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
};
inline constexpr CUpti_CallbackId kDriverLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,        CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
};

// What is recorded: L1 the device's work; L2 also which call of whom launched it, by records of
// launching calls alone (on an H200 with CUPTI 13.0.1 there were none, nor any correlations), of
// all calls of the runtime, or of the driver; whole graphs: a record a replay, with none for its
// nodes.
enum class Level {
  kOff,
  kWork,
  kCalls,
  kWholeGraphs,
  kAllCalls,
  kDriverCalls,
  kAllDriverCalls,
  kLevels
};

inline const char* name_of(Level level) {
  constexpr const char* kNames[] = {"off",          "L1",        "L2",           "whole graphs",
                                    "L2 all calls", "L2 driver", "L2 all driver"};
  return kNames[static_cast<int>(level)];
}

inline bool has_calls(Level level) {
  return level == Level::kCalls || level == Level::kAllCalls || level == Level::kDriverCalls ||
         level == Level::kAllDriverCalls;
}

inline std::vector<CUpti_ActivityKind> kinds_of(Level level) {
  if (level == Level::kOff) return {};
  std::vector<CUpti_ActivityKind> kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
  if (level == Level::kWholeGraphs) kinds.push_back(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (level == Level::kAllCalls) kinds.push_back(CUPTI_ACTIVITY_KIND_RUNTIME);
  if (level == Level::kAllDriverCalls) kinds.push_back(CUPTI_ACTIVITY_KIND_DRIVER);
  if (has_calls(level)) {
    kinds.push_back(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    kinds.push_back(CUPTI_ACTIVITY_KIND_OVERHEAD);
    kinds.push_back(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  }
  return kinds;
}

inline void select_calls(Level level, std::uint8_t on) {
  if (level == Level::kCalls)
    for (const CUpti_CallbackId call : kRuntimeLaunches)
      check(cuptiActivityEnableRuntimeApi(call, on), "cuptiActivityEnableRuntimeApi");
  if (level == Level::kDriverCalls)
    for (const CUpti_CallbackId call : kDriverLaunches)
      check(cuptiActivityEnableDriverApi(call, on), "cuptiActivityEnableDriverApi");
}

inline void enable(Level level) {
  for (const CUpti_ActivityKind kind : kinds_of(level))
    check(cuptiActivityEnable(kind), "cuptiActivityEnable");
  select_calls(level, 1);
}

inline void disable(Level level) {
  select_calls(level, 0);
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
