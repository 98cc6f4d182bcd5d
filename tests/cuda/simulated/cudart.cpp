// The functions of the CUDA runtime that the back end calls, over simulated memory and streams. The
// kernels are those of the program that loads this library.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/simulated/kernel_arguments.h"
#include "tests/cuda/simulated/kernel_runner.h"
#include "tests/cuda/simulated/runtime.h"

namespace trainscope::simulated {
namespace {

constexpr int kVersion = 13000;
constexpr int kDevices = 8;  // which differ in their number alone
constexpr std::size_t kSharedWithoutAsking = 48 * 1024;
constexpr std::size_t kMostShared = 227 * 1024;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksInYAndZ = 65535;

// A __global__ function by the address of what the host calls.
struct Function {
  std::string name;
  std::size_t most_shared_bytes = kSharedWithoutAsking;  // that a launch may add
};
std::map<const void*, Function>& functions() {
  static std::map<const void*, Function> registered;
  return registered;
}

struct Event {
  std::shared_ptr<Moment> moment;
};
struct ReadyGraph {
  std::shared_ptr<const Graph> graph;
};

int current_device = 0;
cudaError_t last_error = cudaSuccess;
cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// What is asked for, and is known.
cudaError_t give(int value, int* to) {
  *to = value;
  return cudaSuccess;
}

cudaError_t error_of(StreamError error) {
  switch (error) {
    case StreamError::kNone:
      return cudaSuccess;
    case StreamError::kCapturing:
      return cudaErrorStreamCaptureUnsupported;
    case StreamError::kIsolation:
      return cudaErrorStreamCaptureIsolation;
    case StreamError::kOtherCapture:
      return cudaErrorStreamCaptureMerge;
    case StreamError::kNotCapturing:
      return cudaErrorIllegalState;
    case StreamError::kNotOrigin:
      return cudaErrorStreamCaptureUnmatched;
    case StreamError::kInvalid:
      return cudaErrorStreamCaptureInvalidated;
    case StreamError::kUnjoined:
      return cudaErrorStreamCaptureUnjoined;
  }
  return cudaErrorUnknown;
}

Stream& stream_of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
bool is_stream(cudaStream_t stream) {
  return runtime().streams.has(reinterpret_cast<const Stream*>(stream));
}
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

cudaError_t launch(const void* kernel, dim3 blocks, dim3 threads, void** values,
                   std::size_t shared_bytes, cudaStream_t stream) {
  const auto found = functions().find(kernel);
  if (found == functions().end()) return cudaErrorInvalidDeviceFunction;
  const Function& function = found->second;
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  const bool fits = count > 0 && count <= kMostThreads && threads.z <= 64 && blocks.x > 0 &&
                    blocks.x <= 0x7FFFFFFFU && blocks.y > 0 && blocks.y <= kMostBlocksInYAndZ &&
                    blocks.z > 0 && blocks.z <= kMostBlocksInYAndZ;
  if (!fits) return cudaErrorInvalidConfiguration;
  if (shared_bytes > function.most_shared_bytes) return cudaErrorInvalidValue;
  const RunnableKernel* runnable = trainscope_simulated_kernel(function.name.c_str());
  if (runnable == nullptr) {
    std::fprintf(stderr, "simulated CUDA: nobody has the kernel %s\n", function.name.c_str());
    return cudaErrorInvalidDeviceFunction;
  }
  ++runtime().counts.launches;
  runtime().memory.load_code();
  ++runtime().counts.launches_of[function.name];
  const LaunchSizes sizes{.blocks = {blocks.x, blocks.y, blocks.z},
                          .threads = {threads.x, threads.y, threads.z},
                          .shared_bytes = shared_bytes};
  const auto arguments = std::make_shared<Arguments>(runnable->argument_bytes(), values);
  runtime().add(
      stream,
      [=] { runnable->run(sizes, arguments->addresses().data(), runtime().memory.blocks()); },
      {.kind = CallKind::kKernel,
       .name = function.name,
       .blocks = {blocks.x, blocks.y, blocks.z},
       .threads = {threads.x, threads.y, threads.z}});
  return cudaSuccess;
}

WorkFacts facts_of_copy(const void* to, const void* from, std::size_t bytes) {
  const Memory& memory = runtime().memory;
  const bool to_device = memory.kind_of(to) == MemoryKind::kDevice;
  const bool from_device = memory.kind_of(from) == MemoryKind::kDevice;
  const int kind = to_device ? (from_device ? 8 : 1) : (from_device ? 2 : 9);
  return {.kind = CallKind::kCopy, .bytes = bytes, .copy_kind = static_cast<std::uint8_t>(kind)};
}

// The host waits.
template <typename Wait>
cudaError_t wait(Wait until) {
  ++runtime().counts.host_waits;
  const std::uint64_t begin_ns = runtime_ns();
  const StreamError error = until();
  if (runtime().observer != nullptr) runtime().observer->waited(begin_ns, runtime_ns());
  return error_of(error);
}

// From pageable memory what is there now is copied, unless it is a graph's; a copy to it waits.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  Runtime& state = runtime();
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (!state.memory.holds(to, bytes) || !state.memory.holds(from, bytes)) {
    return cudaErrorInvalidValue;
  }
  ++state.counts.copies;
  const WorkFacts facts = facts_of_copy(to, from, bytes);
  const bool captured = stream_of(stream).capture != nullptr;
  if (!captured && state.memory.kind_of(from) == MemoryKind::kPageable) {
    const auto* begin = static_cast<const std::byte*>(from);
    const auto staged = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
    state.add(
        stream, [=] { std::memmove(to, staged->data(), bytes); }, facts);
  } else {
    state.add(
        stream, [=] { std::memmove(to, from, bytes); }, facts);
  }
  if (captured || state.memory.kind_of(to) != MemoryKind::kPageable) return cudaSuccess;
  return wait([&] { return state.streams.drain(stream_of(stream)); });
}

cudaError_t allocate(MemoryKind kind, void** block, std::size_t bytes) {
  ++runtime().counts.allocations;
  *block = runtime().memory.allocate(kind, bytes);
  if (*block == nullptr) return cudaErrorMemoryAllocation;
  if (runtime().observer != nullptr) {
    runtime().observer->allocated(reinterpret_cast<std::uintptr_t>(*block), bytes, false);
  }
  return cudaSuccess;
}

cudaError_t release(MemoryKind kind, void* block) {
  if (block == nullptr) return cudaSuccess;
  if (!runtime().memory.release(kind, block)) return cudaErrorInvalidValue;
  if (runtime().observer != nullptr) {
    runtime().observer->allocated(reinterpret_cast<std::uintptr_t>(block), 0, true);
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace trainscope::simulated

using namespace trainscope::simulated;  // NOLINT: what follows is C's

extern "C" {

// --- What nvcc has a library call when it is loaded ----------------------------------------------
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  functions()[host].name = name;
}
// Of the <<<>>> that the back end does not have.
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaErrorNotSupported;
}

// --- Errors --------------------------------------------------------------------------------------
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "a simulated error";
}
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = "simulated error " + std::to_string(static_cast<int>(error));
  return text.c_str();
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

// --- The device ----------------------------------------------------------------------------------
cudaError_t cudaDriverGetVersion(int* version) { return give(kVersion, version); }
cudaError_t cudaRuntimeGetVersion(int* version) { return give(kVersion, version); }
cudaError_t cudaGetDeviceCount(int* count) { return give(kDevices, count); }
cudaError_t cudaGetDevice(int* device) { return give(current_device, device); }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return told(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= kDevices) return told(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "simulated GPU");
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 132;
  properties->totalGlobalMem = kDeviceBytes;
  properties->sharedMemPerBlock = kSharedWithoutAsking;
  properties->sharedMemPerBlockOptin = kMostShared;
  properties->maxThreadsPerBlock = kMostThreads;
  properties->warpSize = 32;
  properties->l2CacheSize = 4 << 20;
  return cudaSuccess;
}

// --- Kernels -------------------------------------------------------------------------------------
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!functions().contains(kernel)) return told(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const auto found = functions().find(kernel);
  if (found == functions().end()) return told(cudaErrorInvalidDeviceFunction);
  const bool is_known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 &&
                        static_cast<std::size_t>(value) <= kMostShared;
  if (!is_known) return told(cudaErrorInvalidValue);
  found->second.most_shared_bytes = static_cast<std::size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  const auto found = functions().find(kernel);
  if (found == functions().end()) return told(cudaErrorInvalidDeviceFunction);
  *name = found->second.name.c_str();
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  if (runtime_refuses("cudaLaunchKernel")) return told(cudaErrorLaunchOutOfResources);
  return told(launch(kernel, blocks, threads, arguments, shared_bytes, stream));
}

// --- Memory --------------------------------------------------------------------------------------
cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  return told(allocate(MemoryKind::kDevice, block, bytes));
}
cudaError_t cudaHostAlloc(void** block, std::size_t bytes, unsigned) {
  return told(allocate(MemoryKind::kPinned, block, bytes));
}
cudaError_t cudaFree(void* block) { return told(release(MemoryKind::kDevice, block)); }
cudaError_t cudaFreeHost(void* block) { return told(release(MemoryKind::kPinned, block)); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (runtime_refuses("cudaMemGetInfo")) return told(cudaErrorUnknown);
  *total = kDeviceBytes;
  *free = kDeviceBytes - runtime().memory.used_device_bytes();
  return told(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (runtime_refuses("cudaMemcpyAsync")) return told(cudaErrorUnknown);
  return told(copy(to, from, bytes, stream));
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const bool well = is_stream(stream) && runtime().memory.holds(to, bytes) &&
                    runtime().memory.kind_of(to) != MemoryKind::kPageable;
  if (!well) return told(cudaErrorInvalidValue);
  ++runtime().counts.fills;
  runtime().add(stream, [=] { std::memset(to, value, bytes); },
                {.kind = CallKind::kSet, .bytes = bytes});
  return cudaSuccess;
}

// --- Streams and events --------------------------------------------------------------------------
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return told(cudaErrorNotSupported);
  *stream = reinterpret_cast<cudaStream_t>(runtime().streams.make());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  runtime().streams.destroy(&stream_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  return told(wait([&] { return runtime().streams.drain(stream_of(stream)); }));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  if (++runtime().counts.stream_waits == runtime().dropped_wait) return cudaSuccess;
  return told(error_of(runtime().streams.wait(stream_of(stream), event_of(event).moment)));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event());
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  runtime().streams.record(stream_of(stream), event_of(event).moment);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::shared_ptr<Moment> moment = event_of(event).moment;
  if (moment != nullptr && moment->capture != nullptr) return told(cudaErrorCapturedEvent);
  return told(wait(
      [&] { return moment == nullptr ? StreamError::kNone : runtime().streams.finish(*moment); }));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::shared_ptr<Moment> first = event_of(begin).moment;
  const std::shared_ptr<Moment> second = event_of(end).moment;
  if (first == nullptr || second == nullptr) return told(cudaErrorInvalidResourceHandle);
  if (!first->done || !second->done) return told(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * (second->seconds - first->seconds));
  return cudaSuccess;
}

// --- Graphs --------------------------------------------------------------------------------------
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  const StreamError error = runtime().streams.begin_capture(stream_of(stream));
  if (error == StreamError::kNone) {
    stream_of(stream).capture->graph->number = runtime().next_graph();
  }
  return told(error_of(error));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  std::shared_ptr<Graph> captured;
  const StreamError error = runtime().streams.end_capture(stream_of(stream), &captured);
  if (error != StreamError::kNone) return told(error_of(error));
  *graph = reinterpret_cast<cudaGraph_t>(new ReadyGraph{captured});
  ++runtime().counts.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  const Graph& original = *reinterpret_cast<ReadyGraph*>(graph)->graph;
  const auto clone = std::make_shared<Graph>(original);
  clone->number = runtime().next_graph();
  for (std::size_t node = 0; node < clone->nodes.size(); ++node) {
    RuntimeObserver* observer = runtime().observer;
    if (observer == nullptr) break;
    const std::uint64_t made = node_number(clone->number, node);
    observer->node_created(made);  // so does CUDA
    observer->node_cloned(node_number(original.number, node), made);
  }
  *ready = reinterpret_cast<cudaGraphExec_t>(new ReadyGraph{clone});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<ReadyGraph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete reinterpret_cast<ReadyGraph*>(ready);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  if (runtime_refuses("cudaGraphLaunch")) return told(cudaErrorUnknown);
  if (!is_stream(stream)) return told(cudaErrorInvalidResourceHandle);
  ++runtime().counts.graph_launches;
  runtime().add_graph(stream, reinterpret_cast<ReadyGraph*>(ready)->graph);
  return cudaSuccess;
}

}  // extern "C"
