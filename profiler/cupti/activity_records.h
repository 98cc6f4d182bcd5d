// Records of CUPTI's activity buffers as they lie in memory, of the kinds that a profile needs.
// Where cupti.h is, layout_check.cpp holds them against it.
#pragma once

#include <array>
#include <cstdint>

namespace trainscope::profiler {

// The library's version whose records these are: another major one may have longer ones.
inline constexpr std::uint32_t kActivityVersion = 130'000;
constexpr bool knows_activity_version(std::uint32_t version) {
  return version / 10'000 == kActivityVersion / 10'000;
}

enum class ActivityKind : std::uint32_t {
  kCopy = 1,
  kSet = 2,
  kDriverCall = 4,
  kRuntimeCall = 5,
  kKernel = 10,  // that may run beside others; kind 3 would serialize them
  kOverhead = 17,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory = 49,  // an allocation or what frees it; kind 45 is an older form
  kGraph = 51,   // a whole graph's run
};

// Times are nanoseconds of one clock; 0: there was no memory for them. Correlation is the number of
// the API call that launched the work; of what a CUDA graph launches all have the graph's, and each
// node its own graph_node.

struct KernelRecord {
  ActivityKind kind = ActivityKind::kKernel;
  std::uint8_t cache = 0;
  std::uint8_t shared_memory_config = 0;
  std::uint16_t registers = 0;  // of a thread
  std::array<std::uint32_t, 2> global_cache = {};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t completed = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::array<std::int32_t, 3> grid = {1, 1, 1};
  std::array<std::int32_t, 3> block = {1, 1, 1};
  std::int32_t static_shared_memory = 0;
  std::int32_t dynamic_shared_memory = 0;
  std::array<std::uint32_t, 2> local_memory = {};
  std::uint32_t correlation = 0;
  std::int64_t grid_id = 0;
  const char* name = nullptr;  // mangled; the library's, as long as it is loaded
  void* reserved = nullptr;
  std::uint64_t queued = 0;
  std::uint64_t submitted = 0;
  std::array<std::uint8_t, 4> launch = {};
  std::uint32_t shared_memory = 0;
  std::uint64_t graph_node = 0;
  std::uint32_t shared_memory_limit = 0;
  std::uint32_t graph = 0;
  void* access_policy = nullptr;
  std::array<std::uint32_t, 2> channel = {};
  std::array<std::uint32_t, 4> cluster = {};
  std::uint64_t local_memory_total = 0;
  std::array<std::uint32_t, 2> cluster_limits = {};
  std::uint8_t is_launched_by_device = 0;
  std::array<std::uint8_t, 7> padding = {};
};

struct CopyRecord {
  ActivityKind kind = ActivityKind::kCopy;
  std::uint8_t copy_kind = 0;  // 1 host to device, 2 device to host, 8 device to device
  std::uint8_t from_kind = 0;
  std::uint8_t to_kind = 0;
  std::uint8_t flags = 0;
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t runtime_correlation = 0;
  std::uint32_t padding = 0;
  void* reserved = nullptr;
  std::uint64_t graph_node = 0;
  std::uint32_t graph = 0;
  std::array<std::uint32_t, 2> channel = {};
  std::array<std::uint8_t, 4> is_launched_by_device = {};
  std::uint64_t copies = 0;
};

struct SetRecord {
  ActivityKind kind = ActivityKind::kSet;
  std::uint32_t value = 0;
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::array<std::uint16_t, 4> flags = {};
  void* reserved = nullptr;
  std::uint64_t graph_node = 0;
  std::uint32_t graph = 0;
  std::array<std::uint32_t, 2> channel = {};
  std::array<std::uint8_t, 4> is_launched_by_device = {};
};

// A call of the runtime's or the driver's API.
struct ApiRecord {
  ActivityKind kind = ActivityKind::kRuntimeCall;
  std::uint32_t callback = 0;  // which function
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
  std::uint32_t result = 0;
};

// Before the record of the API call with the same correlation.
struct ExternalCorrelationRecord {
  ActivityKind kind = ActivityKind::kExternalCorrelation;
  std::uint32_t external_kind = 0;
  std::uint64_t external = 0;  // what the program pushed: a call of the plan
  std::uint32_t correlation = 0;
  std::uint32_t reserved = 0;
};

struct OverheadRecord {
  ActivityKind kind = ActivityKind::kOverhead;
  std::uint32_t overhead = 0;
  std::uint32_t object = 0;
  std::array<std::uint32_t, 3> object_id = {};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t correlation = 0;
  std::uint32_t reserved = 0;
  void* data = nullptr;
};

// Of a synchronization: the host goes on at once, a stream of the device waits.
inline constexpr std::uint32_t kStreamWaitsForEvent = 2;

struct SynchronizationRecord {
  ActivityKind kind = ActivityKind::kSynchronization;
  std::uint32_t type = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t correlation = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;
  std::uint64_t event_sync = 0;
  std::uint32_t result = 0;
  std::uint32_t padding = 0;
};

struct GraphRecord {
  ActivityKind kind = ActivityKind::kGraph;
  std::uint32_t correlation = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint32_t graph = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  void* reserved = nullptr;
  std::uint32_t end_device = 0;
  std::uint32_t end_context = 0;
};

inline constexpr std::uint32_t kAllocation = 1;

struct MemoryRecord {
  ActivityKind kind = ActivityKind::kMemory;
  std::uint32_t operation = 0;    // kAllocation, 2 release
  std::uint32_t memory_kind = 0;  // 3 device, 2 pinned
  std::uint32_t correlation = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time = 0;
  std::uint64_t program_counter = 0;
  std::uint32_t process = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  const char* name = nullptr;
  std::uint32_t is_async = 0;
  std::uint32_t padding = 0;
  std::array<std::uint64_t, 5> pool = {};
  const char* source = nullptr;
};

static_assert(sizeof(KernelRecord) == 216 && sizeof(CopyRecord) == 96 && sizeof(SetRecord) == 88);
static_assert(sizeof(ApiRecord) == 40 && sizeof(ExternalCorrelationRecord) == 24);
static_assert(sizeof(OverheadRecord) == 56 && sizeof(SynchronizationRecord) == 56);
static_assert(sizeof(GraphRecord) == 56);
static_assert(sizeof(MemoryRecord) == 128);

}  // namespace trainscope::profiler
