// What a simulated CUPTI records of the runtime: buffers of the program, filled with records of
// what ran, and callbacks for nodes of graphs.
//
// TRAINSCOPE_SIMULATED_CUPTI_BUFFER=N: of each buffer no more than N bytes are used.
// TRAINSCOPE_SIMULATED_CUPTI_DROP=N: each Nth kernel, copy or set is dropped, and counted.
// TRAINSCOPE_SIMULATED_CUPTI_UNKNOWN=N: before each Nth one there is a record of a kind that nobody
// knows.
// TRAINSCOPE_SIMULATED_CUPTI_LAUNCHES=none: single calls of the API are never recorded, as on an
// H200 with CUPTI 13.0.1.
#pragma once

#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda/simulated/runtime.h"

namespace trainscope::simulated {

inline std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}
inline std::size_t number_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

inline constexpr std::uint32_t kDevice = 0;
inline constexpr std::uint32_t kContext = 1;

// The call of the runtime that CUDA's own header has for it.
inline CUpti_CallbackId call_of(CallKind kind) {
  switch (kind) {
    case CallKind::kKernel:
      return CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    case CallKind::kCopy:
      return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
    case CallKind::kSet:
      return CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;
    case CallKind::kGraph:
      return CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
  }
  return CUPTI_RUNTIME_TRACE_CBID_INVALID;
}

// Buffers of the program, one at a time.
class Records {
 public:
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;

  template <typename Record>
  void add(const Record& record) {
    if (room_ < sizeof(Record)) next_buffer();
    if (room_ < sizeof(Record)) {
      ++dropped;
      return;
    }
    std::memcpy(buffer_ + used_, &record, sizeof(Record));
    used_ += sizeof(Record);
    room_ -= sizeof(Record);
  }
  void flush() {
    if (buffer_ == nullptr) return;
    std::uint8_t* const full = std::exchange(buffer_, nullptr);
    room_ = 0;
    complete(nullptr, 0, full, bytes_, std::exchange(used_, 0));
  }

  std::size_t dropped = 0;

 private:
  void next_buffer() {
    flush();
    if (request == nullptr) return;
    std::size_t most_records = 0;
    bytes_ = 0;
    request(&buffer_, &bytes_, &most_records);
    if (buffer_ == nullptr || reinterpret_cast<std::uintptr_t>(buffer_) % 8 != 0) bytes_ = 0;
    const std::size_t limit = number_of("TRAINSCOPE_SIMULATED_CUPTI_BUFFER");
    room_ = limit == 0 ? bytes_ : std::min(bytes_, limit);
  }

  std::uint8_t* buffer_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;
  std::size_t room_ = 0;
};

class Tracer final : public RuntimeObserver {
 public:
  Records records;
  std::set<CUpti_ActivityKind> kinds;
  std::set<CUpti_CallbackId> runtime_calls;  // that are recorded one by one
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<CUpti_CallbackId> resources;
  std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>> pushed;

  void called(const WorkFacts& facts, std::uint32_t correlation, std::uint64_t begin_ns,
              std::uint64_t end_ns) override {
    const CUpti_CallbackId id = call_of(facts.kind);
    const bool is_single =
        runtime_calls.contains(id) && variable("TRAINSCOPE_SIMULATED_CUPTI_LAUNCHES") != "none";
    if (kinds.contains(CUPTI_ACTIVITY_KIND_DRIVER)) {
      add_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, correlation,
               begin_ns, end_ns);
    }
    if (!is_single && !kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME)) return;
    add_correlations(correlation);
    add_call(CUPTI_ACTIVITY_KIND_RUNTIME, id, correlation, begin_ns, end_ns);
  }

  void waited(std::uint64_t begin_ns, std::uint64_t end_ns) override {
    if (!kinds.contains(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
    CUpti_ActivitySynchronization2 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    record.start = begin_ns;
    record.end = end_ns;
    record.contextId = kContext;
    records.add(record);
  }

  void allocated(std::uint64_t address, std::uint64_t bytes, bool is_release) override {
    if (!kinds.contains(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
    CUpti_ActivityMemory4 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    record.memoryOperationType = is_release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                            : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record.address = address;
    record.bytes = bytes;
    record.timestamp = runtime_ns();
    record.contextId = kContext;
    records.add(record);
  }

  void ran(const RanWork& work) override {
    if (!kinds.contains(kind_of(work.facts.kind))) return;
    ++works_;
    if (is_each("TRAINSCOPE_SIMULATED_CUPTI_DROP")) {
      ++records.dropped;
      return;
    }
    if (is_each("TRAINSCOPE_SIMULATED_CUPTI_UNKNOWN")) {
      CUpti_ActivityAPI unknown = {};
      unknown.kind = CUPTI_ACTIVITY_KIND_FORCE_INT;
      records.add(unknown);
    }
    if (work.facts.kind == CallKind::kKernel) return add_kernel(work);
    work.facts.kind == CallKind::kCopy ? add_copy(work) : add_set(work);
  }

  void node_created(std::uint64_t node) override {
    tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0);
  }
  void node_cloned(std::uint64_t original, std::uint64_t clone) override {
    tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, clone, original);
  }

  // The one that this library tells of itself, where it was asked: that it began to record.
  void add_overhead(std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (!kinds.contains(CUPTI_ACTIVITY_KIND_OVERHEAD)) return;
    CUpti_ActivityOverhead3 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    record.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE;
    record.start = begin_ns;
    record.end = end_ns;
    records.add(record);
  }

 private:
  static CUpti_ActivityKind kind_of(CallKind kind) {
    if (kind == CallKind::kCopy) return CUPTI_ACTIVITY_KIND_MEMCPY;
    return kind == CallKind::kSet ? CUPTI_ACTIVITY_KIND_MEMSET
                                  : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  }

  // Whether the newest work is the Nth once more, N being the variable's.
  bool is_each(const char* name) const {
    const std::size_t n = number_of(name);
    return n != 0 && works_ % n == 0;
  }

  void tell(CUpti_CallbackIdResource id, std::uint64_t node, std::uint64_t original) {
    if (callback == nullptr || !resources.contains(id)) return;
    CUpti_GraphData graph = {};
    graph.node = reinterpret_cast<CUgraphNode>(node);
    graph.originalNode = reinterpret_cast<CUgraphNode>(original);
    CUpti_ResourceData data = {};
    data.resourceDescriptor = &graph;
    callback(user, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }

  void add_correlations(std::uint32_t correlation) {
    if (!kinds.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
    for (const auto& [kind, stack] : pushed) {
      if (stack.empty()) continue;
      CUpti_ActivityExternalCorrelation record = {};
      record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      record.externalKind = kind;
      record.externalId = stack.back();
      record.correlationId = correlation;
      records.add(record);
    }
  }

  void add_call(CUpti_ActivityKind kind, CUpti_CallbackId id, std::uint32_t correlation,
                std::uint64_t begin_ns, std::uint64_t end_ns) {
    CUpti_ActivityAPI record = {};
    record.kind = kind;
    record.cbid = id;
    record.start = begin_ns;
    record.end = end_ns;
    record.correlationId = correlation;
    records.add(record);
  }

  // What kernels, copies and sets have in common.
  template <typename Record>
  static void fill(Record& record, const RanWork& work) {
    record.start = work.begin_ns;
    record.end = work.end_ns;
    record.deviceId = kDevice;
    record.contextId = kContext;
    record.streamId = work.stream;
    record.correlationId = work.correlation;
    record.graphId = work.graph;
    record.graphNodeId = work.node;
  }

  void add_kernel(const RanWork& work) {
    CUpti_ActivityKernel10 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    fill(record, work);
    record.name = names_.insert(work.facts.name).first->c_str();
    record.gridX = static_cast<std::int32_t>(work.facts.blocks[0]);
    record.gridY = static_cast<std::int32_t>(work.facts.blocks[1]);
    record.gridZ = static_cast<std::int32_t>(work.facts.blocks[2]);
    record.blockX = static_cast<std::int32_t>(work.facts.threads[0]);
    record.blockY = static_cast<std::int32_t>(work.facts.threads[1]);
    record.blockZ = static_cast<std::int32_t>(work.facts.threads[2]);
    records.add(record);
  }

  void add_copy(const RanWork& work) {
    CUpti_ActivityMemcpy6 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    fill(record, work);
    record.copyKind = work.facts.copy_kind;
    record.bytes = work.facts.bytes;
    records.add(record);
  }

  void add_set(const RanWork& work) {
    CUpti_ActivityMemset4 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    fill(record, work);
    record.bytes = work.facts.bytes;
    records.add(record);
  }

  std::set<std::string> names_;  // records point to them
  std::size_t works_ = 0;
};

}  // namespace trainscope::simulated
