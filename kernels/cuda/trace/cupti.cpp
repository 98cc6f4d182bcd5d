// CUPTI by dlopen: whoever asks for a trace has found the file, and opened it, before.
#include "kernels/cuda/trace/cupti.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cuda/support/library.h"

namespace trainscope::cuda {
namespace {

constexpr const char* kFile = "libcupti.so.13";
constexpr std::uint32_t kMajorVersion = CUPTI_API_VERSION / 10000;

Cupti& table() {
  static Cupti functions;
  return functions;
}

void find_all(Library& library, Cupti& found) {
  library.find("cuptiGetVersion", found.version);
  library.find("cuptiGetResultString", found.result_string);
  library.find("cuptiSubscribe", found.subscribe);
  library.find("cuptiUnsubscribe", found.unsubscribe);
  library.find("cuptiEnableCallback", found.enable_callback);
  library.find("cuptiGetGraphNodeId", found.graph_node_id);
  library.find("cuptiActivityRegisterCallbacks", found.register_buffers);
  library.find("cuptiActivityRegisterTimestampCallback", found.register_clock);
  library.find("cuptiActivityEnable", found.enable);
  library.find("cuptiActivityDisable", found.disable);
  library.find("cuptiActivityEnableRuntimeApi", found.enable_runtime_call);
  library.find("cuptiActivityEnableDriverApi", found.enable_driver_call);
  library.find("cuptiActivityFlushAll", found.flush);
  library.find("cuptiActivityGetNumDroppedRecords", found.dropped);
  library.find("cuptiActivityGetNextRecord", found.next_record);
  library.find("cuptiActivityPushExternalCorrelationId", found.push_correlation);
  library.find("cuptiActivityPopExternalCorrelationId", found.pop_correlation);
  library.find("cuptiProfilerHostInitialize", found.host_initialize);
  library.find("cuptiProfilerHostDeinitialize", found.host_deinitialize);
  library.find("cuptiProfilerHostConfigAddMetrics", found.host_add_metrics);
  library.find("cuptiProfilerHostGetConfigImageSize", found.host_image_size);
  library.find("cuptiProfilerHostGetConfigImage", found.host_image);
  library.find("cuptiProfilerHostGetNumOfPasses", found.host_passes);
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
  Library library("CUPTI", kFile);
  Cupti found;
  find_all(library, found);
  if (!library.fault().empty()) return library.fault();
  std::string fault = version_fault(found);
  if (fault.empty()) fault = layout_fault(found);
  if (!fault.empty()) return std::string(kFile) + " cannot be used: " + fault;
  table() = found;
  return {};
}

const Cupti& cupti() { return table(); }

}  // namespace trainscope::cuda
