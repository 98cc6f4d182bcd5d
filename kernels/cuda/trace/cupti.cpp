// CUPTI by dlopen: whoever asks for a trace has found the file, and opened it, before.
#include "kernels/cuda/trace/cupti.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace trainscope::cuda {
namespace {

constexpr const char* kFile = "libcupti.so.13";
constexpr std::uint32_t kMajorVersion = CUPTI_API_VERSION / 10000;

Cupti& table() {
  static Cupti functions;
  return functions;
}

template <typename F>
void find(void* library, const char* name, F& function, std::string& missing) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

std::string find_all(void* library, Cupti& found) {
  std::string missing;
  find(library, "cuptiGetVersion", found.version, missing);
  find(library, "cuptiGetResultString", found.result_string, missing);
  find(library, "cuptiGetTimestamp", found.timestamp, missing);
  find(library, "cuptiSubscribe", found.subscribe, missing);
  find(library, "cuptiEnableCallback", found.enable_callback, missing);
  find(library, "cuptiGetGraphNodeId", found.graph_node_id, missing);
  find(library, "cuptiActivityRegisterCallbacks", found.register_buffers, missing);
  find(library, "cuptiActivityEnable", found.enable, missing);
  find(library, "cuptiActivityDisable", found.disable, missing);
  find(library, "cuptiActivityEnableRuntimeApi", found.enable_runtime_call, missing);
  find(library, "cuptiActivityEnableDriverApi", found.enable_driver_call, missing);
  find(library, "cuptiActivityEnableLatencyTimestamps", found.enable_latency, missing);
  find(library, "cuptiActivityFlushAll", found.flush, missing);
  find(library, "cuptiActivityGetNumDroppedRecords", found.dropped, missing);
  find(library, "cuptiActivityGetNextRecord", found.next_record, missing);
  find(library, "cuptiActivityPushExternalCorrelationId", found.push_correlation, missing);
  find(library, "cuptiActivityPopExternalCorrelationId", found.pop_correlation, missing);
  find(library, "cuptiProfilerHostInitialize", found.host_initialize, missing);
  find(library, "cuptiProfilerHostDeinitialize", found.host_deinitialize, missing);
  find(library, "cuptiProfilerHostConfigAddMetrics", found.host_add_metrics, missing);
  find(library, "cuptiProfilerHostGetConfigImageSize", found.host_image_size, missing);
  find(library, "cuptiProfilerHostGetConfigImage", found.host_image, missing);
  find(library, "cuptiProfilerHostGetNumOfPasses", found.host_passes, missing);
  return missing;
}

// A record of each kind that a trace may hold, as this back end was built for them.
struct Layout {
  CUpti_ActivityKind kind;
  std::size_t bytes;
};
constexpr std::array kLayouts = {
    Layout{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
    Layout{CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    Layout{CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    Layout{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
    Layout{CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
    Layout{CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    Layout{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
    Layout{CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3)},
    Layout{CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4)},
    Layout{CUPTI_ACTIVITY_KIND_MEMORY_POOL, sizeof(CUpti_ActivityMemoryPool3)},
};

// A later version of the library may have longer records: its own decoder says where each of a
// buffer's ends. Empty where they end as here.
std::string layout_fault(const Cupti& found) {
  std::size_t bytes = 0;
  for (const Layout& each : kLayouts) bytes += each.bytes;
  std::vector<std::uint64_t> buffer((bytes + 7) / 8);
  auto* const begin = reinterpret_cast<std::uint8_t*>(buffer.data());
  std::size_t at = 0;
  for (const Layout& each : kLayouts) {
    std::memcpy(begin + at, &each.kind, sizeof(each.kind));
    at += each.bytes;
  }
  CUpti_Activity* record = nullptr;
  at = 0;
  for (const Layout& each : kLayouts) {
    const CUptiResult result = found.next_record(begin, bytes, &record);
    const bool is_there =
        result == CUPTI_SUCCESS && reinterpret_cast<std::uint8_t*>(record) == begin + at;
    if (!is_there) return "its records have other lengths than those of CUPTI 13.0";
    at += each.bytes;
  }
  return {};
}

std::string version_fault(const Cupti& found) {
  std::uint32_t version = 0;
  const CUptiResult result = found.version(&version);
  if (result != CUPTI_SUCCESS) return found.error_text(result, "cuptiGetVersion");
  if (version / 10000 == kMajorVersion) return {};
  return "its version is " + std::to_string(version) + ", this back end knows " +
         std::to_string(kMajorVersion * 10000) + " to " +
         std::to_string(kMajorVersion * 10000 + 9999);
}

}  // namespace

std::string Cupti::error_text(CUptiResult result, std::string_view what) const {
  const char* text = nullptr;
  if (result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown";
  return std::string(what) + ": error " + std::to_string(static_cast<int>(result)) + " (" + text +
         ")";
}

DeviceStatus Cupti::status_of(CUptiResult result, std::string_view what) const {
  if (result == CUPTI_SUCCESS) return {};
  return {.code = DeviceStatus::Code::kFailed, .message = error_text(result, what)};
}

std::string load_cupti() {
  if (table().version != nullptr) return {};
  void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return std::string("CUPTI cannot be loaded: ") + (why == nullptr ? kFile : why);
  }
  Cupti found;
  const std::string missing = find_all(library, found);
  if (!missing.empty()) return std::string(kFile) + " lacks " + missing;
  std::string fault = version_fault(found);
  if (fault.empty()) fault = layout_fault(found);
  if (!fault.empty()) return std::string(kFile) + " cannot be used: " + fault;
  table() = found;
  return {};
}

const Cupti& cupti() { return table(); }

}  // namespace trainscope::cuda
