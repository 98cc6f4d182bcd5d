// What CUPTI records of kernels, copies, sets and replays of a graph: its buffers as they come, the
// same records as its own decoder reads them, and what recording costs.
#include <chrono>
#include <fstream>

#include "bench/gpu/cupti_session.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::delivered;
using trainscope::bench::DeviceArray;
using trainscope::bench::Level;
using trainscope::bench::Line;
using trainscope::bench::median;
using trainscope::bench::name_of;

__global__ void scale(float* values, int count, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= factor;
}

__global__ void shift(float* values, int count, float amount) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += amount;
}

constexpr int kCount = 1 << 20;  // elements of f32
constexpr int kBlocks = kCount / 256;
constexpr int kLarge = 1 << 24;

// Work of `node`, as an engine marks it; refused where the level keeps no such record.
template <class Work>
void marked(std::uint64_t node, const Work& work) {
  const CUptiResult pushed =
      cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, node);
  work();
  std::uint64_t popped = 0;
  const CUptiResult left =
      cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped);
  if (pushed != CUPTI_SUCCESS || left != CUPTI_SUCCESS)
    Line("correlation_refused").count("push", pushed).count("pop", left).print();
}

// A graph of `kernels` that scale, one that shifts, a set and a copy.
cudaGraphExec_t captured(cudaStream_t stream, float* values, int kernels, int count) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of capture");
  for (int i = 0; i < kernels; ++i) scale<<<count / 256, 256, 0, stream>>>(values, count, 1.0001f);
  shift<<<count / 256, 256, 0, stream>>>(values, count, 1.0f);
  check(cudaMemsetAsync(values, 0, 4096, stream), "captured set");
  check(cudaMemcpyAsync(values + 4096, values, 8192, cudaMemcpyDeviceToDevice, stream),
        "captured copy");
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&instance, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return instance;
}

// Marked eager work 1 to 6, then a graph of 4 kernels replayed 3 times as 7.
void short_run(cudaStream_t stream, cudaStream_t other, float* values, float* pinned) {
  marked(1, [&] { scale<<<kBlocks, 256, 0, stream>>>(values, kCount, 2.0f); });
  marked(2, [&] { shift<<<kBlocks / 2, 512, 0, stream>>>(values, kCount, 1.0f); });
  marked(3, [&] { check(cudaMemsetAsync(values, 1, 65536, stream), "set"); });
  marked(4, [&] {
    check(cudaMemcpyAsync(pinned, values, 4096, cudaMemcpyDeviceToHost, stream), "to the host");
  });
  marked(5, [&] {
    check(cudaMemcpyAsync(values, pinned, 4096, cudaMemcpyHostToDevice, other), "to the device");
  });
  marked(6, [&] {
    check(cudaMemcpyAsync(values + kCount / 2, values, 16384, cudaMemcpyDeviceToDevice, other),
          "within the device");
  });
  check(cudaStreamSynchronize(other), "cudaStreamSynchronize");
  cudaGraphExec_t graph = captured(stream, values, 3, kCount);
  for (int i = 0; i < 3; ++i) marked(7, [&] { check(cudaGraphLaunch(graph, stream), "replay"); });
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  check_launch("the short run");
}

void print_kernel(const CUpti_ActivityKernel10& k, std::size_t offset) {
  Line("record")
      .text("type", "kernel")
      .count("offset", static_cast<long long>(offset))
      .text("name", k.name)
      .bits("name_pointer", reinterpret_cast<std::uintptr_t>(k.name))
      .count("begin", static_cast<long long>(k.start))
      .count("end", static_cast<long long>(k.end))
      .count("device", k.deviceId)
      .count("context", k.contextId)
      .count("stream", k.streamId)
      .count("grid_x", k.gridX)
      .count("block_x", k.blockX)
      .count("registers", k.registersPerThread)
      .count("correlation", k.correlationId)
      .count("graph_node", static_cast<long long>(k.graphNodeId))
      .count("graph", k.graphId)
      .print();
}

void print_copy(const CUpti_ActivityMemcpy6& m, std::size_t offset) {
  Line("record")
      .text("type", "copy")
      .count("offset", static_cast<long long>(offset))
      .count("copy_kind", m.copyKind)
      .count("bytes", static_cast<long long>(m.bytes))
      .count("begin", static_cast<long long>(m.start))
      .count("end", static_cast<long long>(m.end))
      .count("stream", m.streamId)
      .count("correlation", m.correlationId)
      .count("graph_node", static_cast<long long>(m.graphNodeId))
      .count("graph", m.graphId)
      .print();
}

void print_set(const CUpti_ActivityMemset4& m, std::size_t offset) {
  Line("record")
      .text("type", "set")
      .count("offset", static_cast<long long>(offset))
      .count("bytes", static_cast<long long>(m.bytes))
      .count("begin", static_cast<long long>(m.start))
      .count("end", static_cast<long long>(m.end))
      .count("stream", m.streamId)
      .count("correlation", m.correlationId)
      .count("graph_node", static_cast<long long>(m.graphNodeId))
      .count("graph", m.graphId)
      .print();
}

void print_call(const CUpti_ActivityAPI& call, std::size_t offset) {
  const char* name = "?";
  cuptiGetCallbackName(call.kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                                               : CUPTI_CB_DOMAIN_RUNTIME_API,
                       call.cbid, &name);
  Line("record")
      .text("type", call.kind == CUPTI_ACTIVITY_KIND_DRIVER ? "driver call" : "runtime call")
      .count("offset", static_cast<long long>(offset))
      .text("name", name)
      .count("callback", call.cbid)
      .count("begin", static_cast<long long>(call.start))
      .count("end", static_cast<long long>(call.end))
      .count("thread", call.threadId)
      .count("correlation", call.correlationId)
      .print();
}

void print_other(const CUpti_Activity& record, std::size_t offset) {
  Line line("record");
  line.count("activity_kind", record.kind).count("offset", static_cast<long long>(offset));
  if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto& e = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
    line.text("type", "external correlation")
        .count("external", static_cast<long long>(e.externalId));
    line.count("correlation", e.correlationId);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
    const auto& o = reinterpret_cast<const CUpti_ActivityOverhead3&>(record);
    line.text("type", "overhead").count("overhead", o.overheadKind);
    line.count("begin", static_cast<long long>(o.start))
        .count("end", static_cast<long long>(o.end));
  } else if (record.kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    const auto& s = reinterpret_cast<const CUpti_ActivitySynchronization2&>(record);
    line.text("type", "synchronization").count("synchronization", s.type);
    line.count("begin", static_cast<long long>(s.start))
        .count("end", static_cast<long long>(s.end));
    line.count("stream", s.streamId).count("correlation", s.correlationId);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
    const auto& g = reinterpret_cast<const CUpti_ActivityGraphTrace2&>(record);
    line.text("type", "graph").count("graph", g.graphId).count("correlation", g.correlationId);
    line.count("begin", static_cast<long long>(g.start))
        .count("end", static_cast<long long>(g.end));
    line.count("stream", g.streamId);
  }
  line.print();
}

void print_record(const CUpti_Activity& record, std::size_t offset) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return print_kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(record), offset);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return print_copy(reinterpret_cast<const CUpti_ActivityMemcpy6&>(record), offset);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return print_set(reinterpret_cast<const CUpti_ActivityMemset4&>(record), offset);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return print_call(reinterpret_cast<const CUpti_ActivityAPI&>(record), offset);
    default:
      return print_other(record, offset);
  }
}

// Writes each buffer's valid bytes to a file of its own and prints what lies in it.
void print_delivered(Level level, const std::string& folder) {
  const std::lock_guard<std::mutex> lock(delivered().mutex);
  int number = 0;
  for (std::vector<std::uint8_t>& buffer : delivered().buffers) {
    const std::string name = "activity-" + std::to_string(static_cast<int>(level)) + "-" +
                             std::to_string(number++) + ".bin";
    std::ofstream file(folder + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(buffer.data()),
               static_cast<std::streamsize>(buffer.size()));
    Line("buffer")
        .text("file", name)
        .text("level", name_of(level))
        .count("bytes", static_cast<long long>(buffer.size()))
        .print();
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS)
      print_record(*record, static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) -
                                                     buffer.data()));
  }
  delivered().buffers.clear();
}

void print_nodes() {
  const std::lock_guard<std::mutex> lock(delivered().mutex);
  for (const std::uint64_t node : delivered().created)
    Line("graph_node").count("created", static_cast<long long>(node)).print();
  for (const auto& [node, original] : delivered().original_of)
    Line("graph_node")
        .count("node", static_cast<long long>(node))
        .count("made_from", static_cast<long long>(original))
        .print();
  delivered().created.clear();
  delivered().original_of.clear();
}

double now_us() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

// How a step's kernels are launched.
enum class Launched { kOneByOne, kAsGraph };

// Wall time of a step of 200 kernels over `count` elements each. A graph is made anew each time:
// with CUPTI 13.0.1 a process ended where one whose nodes had been recorded was replayed with whole
// graphs recorded.
double step_us(cudaStream_t stream, float* values, int count, Launched launched) {
  const bool as_graph = launched == Launched::kAsGraph;
  cudaGraphExec_t graph = as_graph ? captured(stream, values, 200, count) : nullptr;
  std::vector<double> times;
  for (int step = 0; step < 40; ++step) {
    const double start = now_us();
    if (as_graph)
      check(cudaGraphLaunch(graph, stream), "replay");
    else
      for (int i = 0; i < 200; ++i) scale<<<count / 256, 256, 0, stream>>>(values, count, 1.0001f);
    check(cudaStreamSynchronize(stream), "a step");
    if (step >= 10) times.push_back(now_us() - start);
  }
  if (as_graph) check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  return median(times);
}

// A step at a level, between two without: the machine may have changed meanwhile.
void overhead(cudaStream_t stream, float* values, Level level, int count, Launched launched) {
  const double before = step_us(stream, values, count, launched);
  trainscope::bench::enable(level);
  const double with = step_us(stream, values, count, launched);
  trainscope::bench::disable(level);
  const double after = step_us(stream, values, count, launched);
  delivered().buffers.clear();
  Line("activity_overhead")
      .text("level", name_of(level))
      .text("launched", launched == Launched::kAsGraph ? "as a graph" : "one by one")
      .count("elements", count)
      .number("kernel_us", std::min(before, after) / 200)
      .number("step_us", with)
      .number("step_us_without", (before + after) / 2)
      .number("ratio", 2 * with / (before + after))
      .print();
}

// Kernels of some 4 us and of some 40 us.
void overheads(cudaStream_t stream, Level level) {
  DeviceArray<float> values(kLarge);
  values.randomize(1);
  for (int round = 0; round < 3; ++round)
    for (const int count : {kCount, kLarge})
      for (const Launched launched : {Launched::kOneByOne, Launched::kAsGraph})
        overhead(stream, values.get(), level, count, launched);
}

Level level_named(const std::string& name) {
  for (int level = 1; level < static_cast<int>(Level::kLevels); ++level)
    if (name == name_of(static_cast<Level>(level))) return static_cast<Level>(level);
  std::printf("{\"kind\": \"error\", \"what\": \"level %s\"}\n", name.c_str());
  std::exit(2);
}

}  // namespace

// activity records LEVEL FOLDER | activity overhead LEVEL: a process each, as CUPTI keeps what was
// on.
int main(int argument_count, char** arguments) {
  const std::string mode = argument_count > 1 ? arguments[1] : "";
  const Level level = level_named(argument_count > 2 ? arguments[2] : "");
  std::uint32_t version = 0;
  check(cuptiGetVersion(&version), "cuptiGetVersion");
  Line("library").count("cupti", version).print();
  trainscope::bench::start_session();
  cudaStream_t stream = nullptr;
  cudaStream_t other = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "a stream");
  if (mode == "overhead") {
    overheads(stream, level);
    return 0;
  }
  DeviceArray<float> values(kCount);
  values.randomize(1);
  float* pinned = nullptr;
  check(cudaMallocHost(&pinned, 65536), "cudaMallocHost");
  trainscope::bench::enable(level);
  short_run(stream, other, values.get(), pinned);
  trainscope::bench::disable(level);
  print_delivered(level, argument_count > 3 ? arguments[3] : ".");
  print_nodes();
  cudaFreeHost(pinned);
  return 0;
}
