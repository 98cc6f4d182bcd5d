// Our records against NVIDIA's header, where it is: a build with another layout fails here.
#include "profiler/cupti/activity_records.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

#include <cstddef>

#if CUPTI_API_VERSION >= 130000 && CUPTI_API_VERSION < 140000
namespace trainscope::profiler {
namespace {

#define SAME(ours, own, theirs, field) \
  static_assert(offsetof(ours, own) == offsetof(theirs, field), #theirs "." #field)
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_KIND(ours, theirs) \
  static_assert(static_cast<unsigned>(ActivityKind::ours) == static_cast<unsigned>(theirs))

SAME_KIND(kCopy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_KIND(kSet, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_KIND(kDriverCall, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_KIND(kRuntimeCall, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_KIND(kKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_KIND(kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME_KIND(kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME_KIND(kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_KIND(kGraph, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME_KIND(kMemory, CUPTI_ACTIVITY_KIND_MEMORY2);

SAME_SIZE(KernelRecord, CUpti_ActivityKernel10);
SAME(KernelRecord, registers, CUpti_ActivityKernel10, registersPerThread);
SAME(KernelRecord, begin, CUpti_ActivityKernel10, start);
SAME(KernelRecord, end, CUpti_ActivityKernel10, end);
SAME(KernelRecord, device, CUpti_ActivityKernel10, deviceId);
SAME(KernelRecord, context, CUpti_ActivityKernel10, contextId);
SAME(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
SAME(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
SAME(KernelRecord, block, CUpti_ActivityKernel10, blockX);
SAME(KernelRecord, static_shared_memory, CUpti_ActivityKernel10, staticSharedMemory);
SAME(KernelRecord, dynamic_shared_memory, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(KernelRecord, graph, CUpti_ActivityKernel10, graphId);
SAME(KernelRecord, queued, CUpti_ActivityKernel10, queued);
SAME(KernelRecord, submitted, CUpti_ActivityKernel10, submitted);

SAME_SIZE(CopyRecord, CUpti_ActivityMemcpy6);
SAME(CopyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(CopyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(CopyRecord, begin, CUpti_ActivityMemcpy6, start);
SAME(CopyRecord, device, CUpti_ActivityMemcpy6, deviceId);
SAME(CopyRecord, stream, CUpti_ActivityMemcpy6, streamId);
SAME(CopyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(CopyRecord, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
SAME(CopyRecord, graph, CUpti_ActivityMemcpy6, graphId);

SAME_SIZE(SetRecord, CUpti_ActivityMemset4);
SAME(SetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME(SetRecord, begin, CUpti_ActivityMemset4, start);
SAME(SetRecord, stream, CUpti_ActivityMemset4, streamId);
SAME(SetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME(SetRecord, graph_node, CUpti_ActivityMemset4, graphNodeId);
SAME(SetRecord, graph, CUpti_ActivityMemset4, graphId);

SAME_SIZE(ApiRecord, CUpti_ActivityAPI);
SAME(ApiRecord, callback, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, begin, CUpti_ActivityAPI, start);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiRecord, result, CUpti_ActivityAPI, returnValue);

SAME_SIZE(ExternalCorrelationRecord, CUpti_ActivityExternalCorrelation);
SAME(ExternalCorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
SAME(ExternalCorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);

SAME_SIZE(OverheadRecord, CUpti_ActivityOverhead3);
SAME(OverheadRecord, overhead, CUpti_ActivityOverhead3, overheadKind);
SAME(OverheadRecord, begin, CUpti_ActivityOverhead3, start);

SAME_SIZE(SynchronizationRecord, CUpti_ActivitySynchronization2);
SAME(SynchronizationRecord, type, CUpti_ActivitySynchronization2, type);
SAME(SynchronizationRecord, begin, CUpti_ActivitySynchronization2, start);
SAME(SynchronizationRecord, stream, CUpti_ActivitySynchronization2, streamId);

static_assert(kStreamWaitsForEvent ==
              static_cast<unsigned>(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT));

SAME_SIZE(GraphRecord, CUpti_ActivityGraphTrace2);
SAME(GraphRecord, correlation, CUpti_ActivityGraphTrace2, correlationId);
SAME(GraphRecord, begin, CUpti_ActivityGraphTrace2, start);
SAME(GraphRecord, graph, CUpti_ActivityGraphTrace2, graphId);
SAME(GraphRecord, stream, CUpti_ActivityGraphTrace2, streamId);

SAME_SIZE(MemoryRecord, CUpti_ActivityMemory4);
SAME(MemoryRecord, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(MemoryRecord, memory_kind, CUpti_ActivityMemory4, memoryKind);
SAME(MemoryRecord, address, CUpti_ActivityMemory4, address);
SAME(MemoryRecord, bytes, CUpti_ActivityMemory4, bytes);
SAME(MemoryRecord, time, CUpti_ActivityMemory4, timestamp);
SAME(MemoryRecord, pool, CUpti_ActivityMemory4, memoryPoolConfig);
SAME(MemoryRecord, source, CUpti_ActivityMemory4, source);

static_assert(kAllocation ==
              static_cast<unsigned>(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION));

#undef SAME
#undef SAME_SIZE
#undef SAME_KIND

}  // namespace
}  // namespace trainscope::profiler
#endif
#endif
