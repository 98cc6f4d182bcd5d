// NVIDIA's CUPTI: its functions in one table, found when somebody wants a trace.
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>

#include <string>
#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Each function has the name that the library has it under.
struct Cupti {
  decltype(&::cuptiGetVersion) version = nullptr;
  decltype(&::cuptiGetResultString) result_string = nullptr;

  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;
  decltype(&::cuptiGetGraphNodeId) graph_node_id = nullptr;

  decltype(&::cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
  decltype(&::cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&::cuptiActivityFlushAll) flush = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityPushExternalCorrelationId) push_correlation = nullptr;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop_correlation = nullptr;

  decltype(&::cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&::cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
  decltype(&::cuptiProfilerHostConfigAddMetrics) host_add_metrics = nullptr;
  decltype(&::cuptiProfilerHostGetConfigImageSize) host_image_size = nullptr;
  decltype(&::cuptiProfilerHostGetConfigImage) host_image = nullptr;
  decltype(&::cuptiProfilerHostGetNumOfPasses) host_passes = nullptr;

  // "cuptiSubscribe: error 39 (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)"
  std::string error_text(CUptiResult result, std::string_view what) const;
  // Done for CUPTI_SUCCESS; `what` is the function that was called.
  DeviceStatus status_of(CUptiResult result, std::string_view what) const;
};

// Loads the library, and holds its records against those that this back end was built for. Empty
// where it may be used, else why not.
std::string load_cupti();
// The table, which is loaded.
const Cupti& cupti();

}  // namespace trainscope::cuda
