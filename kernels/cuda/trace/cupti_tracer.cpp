// What is enabled at which level; what CUPTI calls back.
#include "kernels/cuda/trace/cupti_tracer.h"

#include <ctime>
#include <new>
#include <utility>

#include "kernels/cuda/trace/activity_buffers.h"

namespace trainscope::cuda {
namespace {

constexpr CUpti_ExternalCorrelationKind kPushedAs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

constexpr CUpti_ActivityKind kWorkKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,  // the kind KERNEL would run one kernel at a time
    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr CUpti_ActivityKind kLaunchKinds[] = {CUPTI_ACTIVITY_KIND_OVERHEAD,
                                               CUPTI_ACTIVITY_KIND_SYNCHRONIZATION};

// Calls that give the device work. Libraries of NVIDIA launch through the driver, too.
constexpr CUpti_CallbackId kRuntimeLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
};
constexpr CUpti_CallbackId kDriverLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx};

// CUPTI has them until the process has ended: they are never deleted.
ActivityBuffers& buffers() {
  static ActivityBuffers& all = *new ActivityBuffers();
  return all;
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes,
                               std::size_t* most_records) {
  *buffer = buffers().request();
  *bytes = *buffer == nullptr ? 0 : ActivityBuffers::kBytes;
  *most_records = 0;  // as many as there is room for
}

void CUPTIAPI buffer_completed(CUcontext /*context*/, std::uint32_t /*stream*/,
                               std::uint8_t* buffer, std::size_t /*bytes*/,
                               std::size_t valid_bytes) {
  buffers().complete(buffer, valid_bytes);
}

// The clock of records: not the time of day, which somebody may set while a run goes on.
std::uint64_t CUPTIAPI monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t{1'000'000'000} * static_cast<std::uint64_t>(now.tv_sec) +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void keep_first(DeviceStatus& kept, DeviceStatus status) {
  if (kept.done()) kept = std::move(status);
}

}  // namespace

CuptiTracer* CuptiTracer::get(std::string* why_not) {
  static CuptiTracer* const tracer = new CuptiTracer();
  if (tracer->subscriber_ != nullptr) return tracer;
  *why_not = load_cupti();
  if (!why_not->empty()) return nullptr;
  const DeviceStatus status = tracer->subscribe();
  *why_not = status.message;
  return status.done() ? tracer : nullptr;
}

DeviceStatus CuptiTracer::subscribe() {
  DeviceStatus status =
      cupti().status_of(cupti().subscribe(&subscriber_, &note_node, this), "cuptiSubscribe");
  if (status.done()) {
    status = register_all();
    if (status.done()) return status;
    (void)cupti().unsubscribe(subscriber_);
  }
  subscriber_ = nullptr;
  return status;
}

// Before any kind is enabled: records have times of the clock that was registered then.
DeviceStatus CuptiTracer::register_all() {
  DeviceStatus status = cupti().status_of(cupti().register_clock(&monotonic_ns),
                                          "cuptiActivityRegisterTimestampCallback");
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
    if (!status.done()) return status;
    status =
        cupti().status_of(cupti().enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id),
                          "cuptiEnableCallback");
  }
  if (!status.done()) return status;
  return cupti().status_of(cupti().register_buffers(&buffer_requested, &buffer_completed),
                           "cuptiActivityRegisterCallbacks");
}

// Nothing that is thrown may reach CUPTI.
void CuptiTracer::note_node(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  const auto* graph = static_cast<const CUpti_GraphData*>(resource->resourceDescriptor);
  CuptiTracer& tracer = *static_cast<CuptiTracer*>(self);
  Captured noted{.call = tracer.call_};
  if (cupti().graph_node_id(graph->node, &noted.node) != CUPTI_SUCCESS) return;
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED &&
      cupti().graph_node_id(graph->originalNode, &noted.original) != CUPTI_SUCCESS) {
    return;
  }
  const std::lock_guard lock(tracer.mutex_);
  try {
    tracer.captured_.push_back(noted);
  } catch (const std::bad_alloc&) {
    // Its work stays untied, and is counted so.
  }
}

DeviceStatus CuptiTracer::push(std::uint32_t call) {
  is_pushed_ = true;
  return cupti().status_of(cupti().push_correlation(kPushedAs, call),
                           "cuptiActivityPushExternalCorrelationId");
}

DeviceStatus CuptiTracer::pop() {
  if (!std::exchange(is_pushed_, false)) return {};
  std::uint64_t ignored = 0;
  return cupti().status_of(cupti().pop_correlation(kPushedAs, &ignored),
                           "cuptiActivityPopExternalCorrelationId");
}

void CuptiTracer::at_call(std::uint32_t call) {
  if (call == call_) return;
  call_ = call;
  if (!pushes_) return;
  keep_first(unheard_, pop());
  keep_first(unheard_, push(call));
}

DeviceStatus CuptiTracer::enable(CUpti_ActivityKind kind) {
  const CUptiResult result = cupti().enable(kind);
  if (result == CUPTI_SUCCESS) kinds_.push_back(kind);
  return cupti().status_of(result,
                           "cuptiActivityEnable of kind " + std::to_string(static_cast<int>(kind)));
}

// Records of the calls that launch carry the correlations that were pushed before them.
DeviceStatus CuptiTracer::enable_launches(bool all) {
  DeviceStatus status = enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  if (all) {
    if (status.done()) status = enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    return status.done() ? enable(CUPTI_ACTIVITY_KIND_DRIVER) : status;
  }
  has_launches_ = true;
  for (const CUpti_CallbackId id : kRuntimeLaunches) {
    if (!status.done()) return status;
    status = cupti().status_of(cupti().enable_runtime_call(id, 1), "cuptiActivityEnableRuntimeApi");
  }
  for (const CUpti_CallbackId id : kDriverLaunches) {
    if (!status.done()) return status;
    status = cupti().status_of(cupti().enable_driver_call(id, 1), "cuptiActivityEnableDriverApi");
  }
  return status;
}

DeviceStatus CuptiTracer::enable_all(const TraceWishes& wishes) {
  DeviceStatus status;
  const auto enable_each = [&](auto&& kinds) {
    for (const CUpti_ActivityKind kind : kinds) {
      if (status.done()) status = enable(kind);
    }
  };
  const bool has_calls = wishes.level >= TraceLevel::kLaunches || wishes.ties_launches;
  const bool has_all_calls = wishes.has_all_api_calls || wishes.level >= TraceLevel::kAll;
  if (has_calls) status = enable_launches(has_all_calls);
  if (status.done() && wishes.level >= TraceLevel::kAll) {
    status = enable(CUPTI_ACTIVITY_KIND_MEMORY2);
  }
  if (wishes.level >= TraceLevel::kLaunches) enable_each(kLaunchKinds);
  enable_each(kWorkKinds);
  if (status.done() && has_calls) {
    pushes_ = true;
    status = push(call_);
  }
  return status;
}

DeviceStatus CuptiTracer::start(const TraceWishes& wishes) {
  (void)stop();
  if (wishes.level == TraceLevel::kOff) return {};
  DeviceStatus status = enable_all(wishes);
  if (!status.done()) (void)stop();
  return status;
}

DeviceStatus CuptiTracer::stop() {
  DeviceStatus first = std::exchange(unheard_, {});
  keep_first(first, pop());
  pushes_ = false;
  while (!kinds_.empty()) {
    keep_first(first, cupti().status_of(cupti().disable(kinds_.back()), "cuptiActivityDisable"));
    kinds_.pop_back();
  }
  if (std::exchange(has_launches_, false)) {
    for (const CUpti_CallbackId id : kRuntimeLaunches) (void)cupti().enable_runtime_call(id, 0);
    for (const CUpti_CallbackId id : kDriverLaunches) (void)cupti().enable_driver_call(id, 0);
  }
  return first;
}

DeviceStatus CuptiTracer::take(TraceReader& reader) {
  DeviceStatus status = cupti().status_of(cupti().flush(0), "cuptiActivityFlushAll");
  std::vector<Captured> captured;
  {
    const std::lock_guard lock(mutex_);
    captured.swap(captured_);
  }
  for (const Captured& each : captured) {
    if (each.original == 0) {
      reader.captured(each.node, each.call);
    } else {
      reader.cloned(each.original, each.node);
    }
  }
  buffers().take([&](std::span<const std::byte> bytes) { reader.records(bytes); });
  std::size_t dropped = 0;
  keep_first(status, cupti().status_of(cupti().dropped(nullptr, 0, &dropped),
                                       "cuptiActivityGetNumDroppedRecords"));
  if (dropped > 0) reader.dropped(dropped);
  keep_first(status, std::exchange(unheard_, {}));
  return status;
}

}  // namespace trainscope::cuda
