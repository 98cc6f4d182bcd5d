// CUPTI over the simulated runtime, with the layouts of CUPTI 13.0 and the order of its callbacks.
// TRAINSCOPE_SIMULATED_CUPTI_REFUSE=NAME: this function fails.
#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda/simulated/cupti_records.h"
#include "tests/cuda/simulated/runtime.h"

namespace trainscope::simulated {
namespace {

Tracer& tracer() {
  static auto* const made = new Tracer();  // work may end after this library's objects
  return *made;
}

CUptiResult answer(std::string_view function, CUptiResult refusal) {
  return variable("TRAINSCOPE_SIMULATED_CUPTI_REFUSE") == function ? refusal : CUPTI_SUCCESS;
}

std::size_t bytes_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    default:
      return 0;
  }
}

}  // namespace
}  // namespace trainscope::simulated

using namespace trainscope::simulated;  // NOLINT: what follows is C's

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "a simulated refusal";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* user) {
  if (tracer().callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const CUptiResult result =
      answer("cuptiSubscribe", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  if (result != CUPTI_SUCCESS) return result;
  tracer().callback = callback;
  tracer().user = user;
  runtime().observer = &tracer();
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&tracer());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber != reinterpret_cast<CUpti_SubscriberHandle>(&tracer())) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  tracer().callback = nullptr;
  tracer().resources.clear();
  runtime().observer = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t on, CUpti_SubscriberHandle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) return CUPTI_ERROR_INVALID_PARAMETER;
  const CUptiResult result = answer("cuptiEnableCallback", CUPTI_ERROR_NOT_COMPATIBLE);
  if (result != CUPTI_SUCCESS) return result;
  on != 0 ? (void)tracer().resources.insert(id) : (void)tracer().resources.erase(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  if (node == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<std::uintptr_t>(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  const CUptiResult result = answer("cuptiActivityRegisterCallbacks", CUPTI_ERROR_NOT_COMPATIBLE);
  if (result != CUPTI_SUCCESS) return result;
  tracer().records.request = request;
  tracer().records.complete = complete;
  return CUPTI_SUCCESS;
}
// Stricter than CUPTI, which lets records of before have times of another clock.
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc now_ns) {
  if (now_ns == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!tracer().kinds.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  runtime_takes_clock(now_ns);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (bytes_of(kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  const CUptiResult result = answer("cuptiActivityEnable", CUPTI_ERROR_NOT_COMPATIBLE);
  if (result != CUPTI_SUCCESS) return result;
  const std::uint64_t begin_ns = runtime_ns();
  tracer().kinds.insert(kind);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) tracer().add_overhead(begin_ns, runtime_ns());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  tracer().kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t on) {
  on != 0 ? (void)tracer().runtime_calls.insert(id) : (void)tracer().runtime_calls.erase(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
// The record of what was launched is in its buffer from then on, and not complete until it has run.
CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  const bool is_forced = flag != 0;
  if (is_forced || runtime_is_idle()) tracer().records.flush();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = std::exchange(tracer().records.dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes,
                                       CUpti_Activity** record) {
  auto* at = reinterpret_cast<std::uint8_t*>(*record);
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
  if (at == nullptr) {
    at = buffer;
  } else {
    std::memcpy(&kind, at, sizeof(kind));
    at += bytes_of(kind);
  }
  if (at + sizeof(kind) > buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  std::memcpy(&kind, at, sizeof(kind));
  if (bytes_of(kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   std::uint64_t id) {
  tracer().pushed[kind].push_back(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  std::uint64_t* id) {
  std::vector<std::uint64_t>& stack = tracer().pushed[kind];
  if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *id = stack.back();
  stack.pop_back();
  return CUPTI_SUCCESS;
}

// No counters are simulated.
CUptiResult cuptiProfilerHostInitialize(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiProfilerHostDeinitialize(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiProfilerHostConfigAddMetrics(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiProfilerHostGetConfigImageSize(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiProfilerHostGetConfigImage(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiProfilerHostGetNumOfPasses(void*) { return CUPTI_ERROR_NOT_SUPPORTED; }

}  // extern "C"
