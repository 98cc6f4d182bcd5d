// What it costs to launch: kernels one by one, nodes of a CUDA graph, events, small copies; and to
// begin: the device's context, memory.
#include <chrono>

#include "bench/gpu/support.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::Line;
using trainscope::bench::median;

constexpr int kLaunches = 500;  // fewer than the queue of a stream holds
constexpr int kRounds = 21;

struct LargeArguments {
  char bytes[4000];
};

__global__ void empty_kernel(int* memory) {
  if (memory != nullptr) *memory = 0;
}

__global__ void large_arguments_kernel(LargeArguments arguments, int* memory) {
  if (memory != nullptr) *memory = arguments.bytes[0];
}

double now_us() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

// Microseconds a call on the host, and of the device's own time, of `calls` calls in a row.
template <class Call>
void measure(const char* name, cudaStream_t stream, int calls, const Call& call) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> host;
  std::vector<double> device;
  for (int round = 0; round < kRounds; ++round) {
    check(cudaStreamSynchronize(stream), name);
    check(cudaEventRecord(begin, stream), name);
    const double start = now_us();
    for (int i = 0; i < calls; ++i) call();
    const double stop = now_us();
    check(cudaEventRecord(end, stream), name);
    check(cudaStreamSynchronize(stream), name);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), name);
    if (round == 0) continue;
    host.push_back((stop - start) / calls);
    device.push_back(1e3 * milliseconds / calls);
  }
  Line("launch")
      .text("what", name)
      .count("calls", calls)
      .number("host_us", median(host))
      .number("device_us", median(device))
      .number("host_us_min", *std::min_element(host.begin(), host.end()))
      .number("device_us_min", *std::min_element(device.begin(), device.end()))
      .print();
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

void eager_launches(cudaStream_t stream) {
  measure("kernel of 1 block", stream, kLaunches,
          [&] { empty_kernel<<<1, 32, 0, stream>>>(nullptr); });
  measure("kernel of 1320 blocks of 256", stream, kLaunches,
          [&] { empty_kernel<<<1320, 256, 0, stream>>>(nullptr); });
  const LargeArguments arguments = {};
  measure("kernel of 4000 bytes of arguments", stream, kLaunches,
          [&] { large_arguments_kernel<<<1, 32, 0, stream>>>(arguments, nullptr); });
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int* nothing = nullptr;
  measure("kernel with programmatic dependent launch", stream, kLaunches,
          [&] { check(cudaLaunchKernelEx(&config, empty_kernel, nothing), "cudaLaunchKernelEx"); });
  measure("kernel and wait for it", stream, 50, [&] {
    empty_kernel<<<1, 32, 0, stream>>>(nullptr);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
  check_launch("eager launches");
}

void events_and_copies(cudaStream_t stream) {
  cudaEvent_t timed = nullptr;
  cudaEvent_t plain = nullptr;
  check(cudaEventCreate(&timed), "cudaEventCreate");
  check(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  measure("event with a time", stream, kLaunches,
          [&] { check(cudaEventRecord(timed, stream), "cudaEventRecord"); });
  measure("event without a time", stream, kLaunches,
          [&] { check(cudaEventRecord(plain, stream), "cudaEventRecord"); });
  measure("wait of a stream for an event", stream, kLaunches,
          [&] { check(cudaStreamWaitEvent(stream, plain), "cudaStreamWaitEvent"); });
  trainscope::bench::DeviceArray<char> memory(1 << 20);
  char* pinned = nullptr;
  check(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
  measure("memset of 4 KiB", stream, kLaunches,
          [&] { check(cudaMemsetAsync(memory.get(), 0, 4096, stream), "cudaMemsetAsync"); });
  measure("copy of 4 KiB within the device", stream, kLaunches, [&] {
    check(
        cudaMemcpyAsync(memory.get(), memory.get() + 8192, 4096, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
  });
  measure("copy of 4 KiB from pinned memory", stream, kLaunches, [&] {
    check(cudaMemcpyAsync(memory.get(), pinned, 4096, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
  });
  measure("copy of 4 bytes to pinned memory and wait", stream, 50, [&] {
    check(cudaMemcpyAsync(pinned, memory.get(), 4, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
  cudaFreeHost(pinned);
  cudaEventDestroy(timed);
  cudaEventDestroy(plain);
}

// A chain of `nodes` empty kernels as a graph: what instantiation and a replay cost.
void graph_of(int nodes, int blocks, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of capture");
  for (int i = 0; i < nodes; ++i) empty_kernel<<<blocks, 128, 0, stream>>>(nullptr);
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  cudaGraphExec_t instance = nullptr;
  const double start = now_us();
  check(cudaGraphInstantiate(&instance, graph, 0), "cudaGraphInstantiate");
  const double instantiated = now_us();
  check(cudaGraphUpload(instance, stream), "cudaGraphUpload");
  const std::string name =
      "graph of " + std::to_string(nodes) + " kernels of " + std::to_string(blocks) + " blocks";
  Line("graph")
      .count("nodes", nodes)
      .count("blocks", blocks)
      .number("instantiate_us", instantiated - start)
      .print();
  measure(name.c_str(), stream, 10, [&] { check(cudaGraphLaunch(instance, stream), "launch"); });
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(graph);
}

// Milliseconds of one allocation and its release, by the host's clock: a median of 5.
void allocations() {
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 30}) {
    std::vector<double> device;
    std::vector<double> released;
    std::vector<double> pinned;
    for (int i = 0; i < 5; ++i) {
      void* memory = nullptr;
      const double start = now_us();
      check(cudaMalloc(&memory, bytes), "cudaMalloc");
      const double made = now_us();
      check(cudaFree(memory), "cudaFree");
      const double freed = now_us();
      check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
      device.push_back((made - start) / 1e3);
      released.push_back((freed - made) / 1e3);
      pinned.push_back((now_us() - freed) / 1e3);
      check(cudaFreeHost(memory), "cudaFreeHost");
    }
    Line("allocation")
        .count("bytes", static_cast<long long>(bytes))
        .number("cudaMalloc_ms", median(device))
        .number("cudaFree_ms", median(released))
        .number("cudaMallocHost_ms", median(pinned))
        .print();
  }
}

void first_call() {
  const double start = now_us();
  check(cudaFree(nullptr), "the device's context");
  Line("first_call").number("ms", (now_us() - start) / 1e3).print();
}

}  // namespace

int main() {
  first_call();
  allocations();
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  eager_launches(stream);
  events_and_copies(stream);
  for (const int nodes : {1, 10, 100, 1000}) graph_of(nodes, 1, stream);
  graph_of(1000, 264, stream);
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return 0;
}
