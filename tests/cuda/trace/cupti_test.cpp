// The tracer's own parts, and what NVIDIA's library says without a GPU: where a buffer's records
// are, what they hold, which metrics a chip has. Without the library its cases say so.
#include "kernels/cuda/trace/cupti.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/cuda/loader/library_folders.h"
#include "kernels/cuda/trace/activity_buffers.h"
#include "kernels/cuda/trace/metrics.h"
#include "profiler/cupti/activity_decoder.h"

namespace trainscope::cuda::test {
namespace {

// Whether NVIDIA's library is here: found as a program finds it.
bool has_cupti() {
  const auto folders = library_folders(places_of_this_process());
  const std::string path = find_library(folders, "libcupti.so.13").string();
  if (path.empty() || ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    MESSAGE("libcupti.so.13 is not here: skipped");
    return false;
  }
  const std::string why_not = load_cupti();
  CHECK(why_not == "");
  return why_not.empty();
}

TEST_CASE("activity buffers: aligned, used again in turn, bounded") {
  ActivityBuffers buffers;
  std::uint8_t* const first = buffers.request();
  REQUIRE((first != nullptr));
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 8 == 0);
  std::uint8_t* const second = buffers.request();
  first[0] = 1;
  second[0] = 2;
  buffers.complete(second, 16);
  buffers.complete(first, 8);
  std::uint8_t stranger = 0;
  buffers.complete(&stranger, 1);
  std::string read;
  const auto note = [&](std::span<const std::byte> bytes) {
    read += std::to_string(std::to_integer<int>(bytes[0])) + " of " + std::to_string(bytes.size()) +
            ", ";
  };
  buffers.take(note);
  CHECK(read == "2 of 16, 1 of 8, ");
  buffers.take(note);
  CHECK(read == "2 of 16, 1 of 8, ");
  std::vector<std::uint8_t*> given;
  for (std::size_t i = 0; i < ActivityBuffers::kMost; ++i) given.push_back(buffers.request());
  CHECK(std::ranges::count(given, nullptr) == 0);
  CHECK(std::ranges::count(given, first) == 1);
  CHECK(std::ranges::count(given, second) == 1);
  CHECK((buffers.request() == nullptr));
  buffers.complete(given[0], 8);
  CHECK((buffers.request() == nullptr));  // nobody has read it yet
  bool is_read = false;
  buffers.take([&](std::span<const std::byte> bytes) {
    is_read = true;
    CHECK(bytes.size() == 8);
    CHECK((buffers.request() == nullptr));  // its bytes are still in use
  });
  CHECK(is_read);
  CHECK((buffers.request() == given[0]));
}

TEST_CASE("metrics: NVIDIA's library has the five of a kernel for an H200, in two passes") {
  if (!has_cupti()) return;
  const std::vector<std::string> all(std::begin(kKernelMetrics), std::end(kKernelMetrics));
  CHECK(all.size() == 5);
  const MetricPasses five = passes_of("GH100", all);
  CHECK(five.why_not == "");
  CHECK(five.passes == 2);
  const MetricPasses four = passes_of("GH100", {all.begin(), all.end() - 1});
  CHECK(four.why_not == "");
  CHECK(four.passes == 1);
}

TEST_CASE("metrics: a name that is wrong is refused, and named; so is a chip") {
  if (!has_cupti()) return;
  const MetricPasses wrong = passes_of(
      "GH100", {"dram__bytes_read.sum", "dram__bytes_reed.sum", "gpu__time_duration.sum"});
  CHECK(wrong.passes == 0);
  CHECK(wrong.why_not.starts_with("GH100 has no metric 'dram__bytes_reed.sum' ("));
  CHECK(passes_of("GX999", {"dram__bytes_read.sum"}).why_not.find("GX999") != std::string::npos);
}

// A field that both layouts have, by its bytes.
using Numbers = std::vector<std::uint64_t>;

// A record of NVIDIA's layout whose every byte differs from the one before it.
template <typename Record>
Record filled(CUpti_ActivityKind kind, std::uint8_t seed) {
  Record record;
  std::array<std::uint8_t, sizeof(Record)> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(seed + 7 * i);
  std::memcpy(static_cast<void*>(&record), bytes.data(), bytes.size());
  record.kind = kind;
  return record;
}

class Buffer {
 public:
  template <typename Record>
  void add(const Record& record) {
    const std::size_t at = bytes();
    words_.resize(words_.size() + sizeof(Record) / 8);
    std::memcpy(data() + at, &record, sizeof(Record));
  }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  std::size_t bytes() const { return 8 * words_.size(); }

 private:
  std::vector<std::uint64_t> words_;
};

Buffer all_kinds() {
  Buffer buffer;
  for (const std::uint8_t seed : {std::uint8_t{1}, std::uint8_t{90}}) {
    buffer.add(
        filled<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, seed));
    buffer.add(filled<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, seed));
    buffer.add(filled<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, seed));
    buffer.add(filled<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, seed));
    buffer.add(filled<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, seed));
    buffer.add(filled<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, seed));
    buffer.add(filled<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD, seed));
    buffer.add(filled<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, seed));
    buffer.add(filled<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2, seed));
    buffer.add(filled<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER, seed));
  }
  return buffer;
}

template <typename... Fields>
Numbers numbers(Fields... fields) {
  return {static_cast<std::uint64_t>(fields)...};
}
std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The fields that a profile reads, by our decoder.
class Ours final : public profiler::ActivitySink {
 public:
  std::vector<Numbers> records;

  void kernel(const profiler::KernelRecord& r) override {
    records.push_back(numbers(r.kind, r.registers, r.begin, r.end, r.completed, r.device, r.context,
                              r.stream, r.grid[0], r.grid[1], r.grid[2], r.block[0], r.block[1],
                              r.block[2], r.static_shared_memory, r.dynamic_shared_memory,
                              r.correlation, r.grid_id, address(r.name), r.queued, r.submitted,
                              r.graph_node, r.graph, r.cluster[0], r.local_memory_total));
  }
  void copy(const profiler::CopyRecord& r) override {
    records.push_back(numbers(r.kind, r.copy_kind, r.from_kind, r.to_kind, r.bytes, r.begin, r.end,
                              r.device, r.context, r.stream, r.correlation, r.graph_node, r.graph,
                              r.copies));
  }
  void set(const profiler::SetRecord& r) override {
    records.push_back(numbers(r.kind, r.value, r.bytes, r.begin, r.end, r.device, r.context,
                              r.stream, r.correlation, r.graph_node, r.graph));
  }
  void graph(const profiler::GraphRecord& r) override {
    records.push_back(numbers(r.kind, r.correlation, r.begin, r.end, r.device, r.graph, r.context,
                              r.stream, r.end_device, r.end_context));
  }
  void api_call(const profiler::ApiRecord& r) override {
    records.push_back(
        numbers(r.kind, r.callback, r.begin, r.end, r.process, r.thread, r.correlation, r.result));
  }
  void external_correlation(const profiler::ExternalCorrelationRecord& r) override {
    records.push_back(numbers(r.kind, r.external_kind, r.external, r.correlation));
  }
  void synchronization(const profiler::SynchronizationRecord& r) override {
    records.push_back(numbers(r.kind, r.type, r.begin, r.end, r.correlation, r.context, r.stream,
                              r.event, r.event_sync, r.result));
  }
  void overhead(const profiler::OverheadRecord& r) override {
    records.push_back(numbers(r.kind, r.overhead, r.object, r.begin, r.end, r.correlation));
  }
  void memory(const profiler::MemoryRecord& r) override {
    records.push_back(numbers(r.kind, r.operation, r.memory_kind, r.correlation, r.address, r.bytes,
                              r.time, r.process, r.device, r.context, r.stream, address(r.name),
                              r.is_async, r.pool[0], r.pool[4], address(r.source)));
  }
};

template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

// The same of a record that NVIDIA's decoder found, by NVIDIA's header.
Numbers theirs(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& r = as<CUpti_ActivityKernel10>(record);
      return numbers(r.kind, r.registersPerThread, r.start, r.end, r.completed, r.deviceId,
                     r.contextId, r.streamId, r.gridX, r.gridY, r.gridZ, r.blockX, r.blockY,
                     r.blockZ, r.staticSharedMemory, r.dynamicSharedMemory, r.correlationId,
                     r.gridId, address(r.name), r.queued, r.submitted, r.graphNodeId, r.graphId,
                     r.clusterX, r.localMemoryTotal_v2);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& r = as<CUpti_ActivityMemcpy6>(record);
      return numbers(r.kind, r.copyKind, r.srcKind, r.dstKind, r.bytes, r.start, r.end, r.deviceId,
                     r.contextId, r.streamId, r.correlationId, r.graphNodeId, r.graphId,
                     r.copyCount);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = as<CUpti_ActivityMemset4>(record);
      return numbers(r.kind, r.value, r.bytes, r.start, r.end, r.deviceId, r.contextId, r.streamId,
                     r.correlationId, r.graphNodeId, r.graphId);
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      const auto& r = as<CUpti_ActivityGraphTrace2>(record);
      return numbers(r.kind, r.correlationId, r.start, r.end, r.deviceId, r.graphId, r.contextId,
                     r.streamId, r.endDeviceId, r.endContextId);
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& r = as<CUpti_ActivityAPI>(record);
      return numbers(r.kind, r.cbid, r.start, r.end, r.processId, r.threadId, r.correlationId,
                     r.returnValue);
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& r = as<CUpti_ActivityExternalCorrelation>(record);
      return numbers(r.kind, r.externalKind, r.externalId, r.correlationId);
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& r = as<CUpti_ActivitySynchronization2>(record);
      return numbers(r.kind, r.type, r.start, r.end, r.correlationId, r.contextId, r.streamId,
                     r.cudaEventId, r.cudaEventSyncId, r.returnValue);
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& r = as<CUpti_ActivityOverhead3>(record);
      return numbers(r.kind, r.overheadKind, r.objectKind, r.start, r.end, r.correlationId);
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto& r = as<CUpti_ActivityMemory4>(record);
      std::array<std::uint64_t, 5> pool;
      static_assert(sizeof(pool) == sizeof(r.memoryPoolConfig));
      std::memcpy(pool.data(), &r.memoryPoolConfig, sizeof(pool));
      return numbers(r.kind, r.memoryOperationType, r.memoryKind, r.correlationId, r.address,
                     r.bytes, r.timestamp, r.processId, r.deviceId, r.contextId, r.streamId,
                     address(r.name), r.isAsync, pool[0], pool[4], address(r.source));
    }
    default:
      return {};
  }
}

TEST_CASE(
    "activity decoder: NVIDIA's own finds the same records with the same fields, of all kinds") {
  if (!has_cupti()) return;
  Buffer buffer = all_kinds();
  Ours ours;
  const profiler::ActivityReading reading = profiler::decode_activities(
      std::span(reinterpret_cast<const std::byte*>(buffer.data()), buffer.bytes()), ours);
  CHECK(reading.fault == "");
  CHECK(reading.read_bytes == buffer.bytes());
  std::vector<Numbers> found;
  CUpti_Activity* record = nullptr;
  while (cupti().next_record(buffer.data(), buffer.bytes(), &record) == CUPTI_SUCCESS) {
    REQUIRE(found.size() < 20);
    found.push_back(theirs(*record));
  }
  REQUIRE(found.size() == 20);
  REQUIRE(ours.records.size() == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(ours.records[i].size() >= 4);
    CHECK((ours.records[i] == found[i]));
  }
}

}  // namespace
}  // namespace trainscope::cuda::test
