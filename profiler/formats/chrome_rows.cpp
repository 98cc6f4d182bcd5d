// Text of rows.
#include "profiler/formats/chrome_rows.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/core/json.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::profiler {
namespace {

// Some readers take stream 0 for none; a driver gives 7 to the first.
constexpr int kFirstStream = 7;
constexpr std::string_view kAsDevice = "CPU rows shown as a device's (--as-device)";

std::string span_head(std::string_view category, std::string_view name, const RowPlace& place) {
  return "{\"ph\": \"X\", \"cat\": \"" + std::string(category) +
         "\", \"name\": " + quoted_text(name) + ", " + place_text(place);
}

// Readers tell by the beginning of its name whether a kernel computes, communicates or copies; what
// a CPU runs under such a name computes.
std::string kernel_name(std::string_view kernel) {
  constexpr std::array<std::string_view, 3> kOther = {"nccl", "Memcpy", "Memset"};
  const bool is_taken = std::ranges::any_of(
      kOther, [&](std::string_view beginning) { return kernel.starts_with(beginning); });
  return (is_taken ? "kernel " : "") + std::string(kernel);
}

// A transfer goes to where its output lies.
std::string copy_name(const PlanView& plan, const PlanCall& call) {
  if (call.kind == PlanCallKind::kStateCopy) return "Memcpy DtoD (Device -> Device)";
  for (const PlanOperand& output : rows_of(plan.operands, call.outputs)) {
    if (output.buffer == kNoRow) continue;
    const bool to_host = plan.buffers[output.buffer].space == PlanSpaceKind::kHost;
    return to_host ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy HtoD (Pinned -> Device)";
  }
  return "Memcpy DtoD (Device -> Device)";
}

}  // namespace

std::string quoted_text(std::string_view text) { return Json(text).dump(); }

std::string microseconds(std::int64_t ns) {
  const std::string digits = std::to_string(std::abs(ns % 1000));
  return (ns < 0 && ns > -1000 ? "-" : "") + std::to_string(ns / 1000) + "." +
         std::string(3 - digits.size(), '0') + digits;
}

std::string place_text(const RowPlace& place) {
  return "\"pid\": " + std::to_string(place.process) + ", \"tid\": " + std::to_string(place.thread);
}

std::string metadata_row(std::string_view name, const RowPlace& place, const std::string& args) {
  return "{\"ph\": \"M\", \"name\": " + quoted_text(name) + ", \"ts\": 0, " + place_text(place) +
         ", \"args\": " + args + "}";
}

std::string arrow_row(const ArrowEnd& end) {
  return "{\"ph\": \"" + std::string(end.phase) + "\", \"id\": " + std::to_string(end.id) + ", " +
         place_text(end.place) + ", \"ts\": " + microseconds(end.ns) + ", \"cat\": \"" +
         std::string(end.name) + "\", \"name\": \"" + std::string(end.name) + "\"" +
         (end.phase == "f" ? ", \"bp\": \"e\"}" : "}");
}

RowPlace host_place(std::int64_t rank, int thread) {
  const std::int64_t process = kMostRanks * (1 + rank);
  return {.process = process, .thread = process + thread};
}

std::int64_t arrow_id(std::int64_t rank, std::int64_t number) { return (rank << 32) + number; }

DeviceWork device_work(const PlanView& plan, const Event& event, const RowPlace& host,
                       std::int64_t id) {
  if (event.kind != EventKind::kCall) {
    const bool to_device = event.kind != EventKind::kRead;
    return {.event = event,
            .host = host,
            .kernel =
                to_device ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)",
            .bytes = event.id < plan.values.size() ? plan.values[event.id].bytes : 0,
            .id = id};
  }
  const PlanCall& call = plan.calls[event.id];
  if (call.kind == PlanCallKind::kStateCopy || call.kind == PlanCallKind::kTransfer) {
    return {.event = event,
            .host = host,
            .kernel = copy_name(plan, call),
            .bytes = call.bytes_written,
            .id = id};
  }
  return {.event = event, .host = host, .kernel = kernel_name(kernel_of(plan, call)), .id = id};
}

// The launch takes the first nanosecond of the time, so that the kernel begins behind it.
std::string device_rows(const DeviceWork& work, std::int64_t rank) {
  const bool copies = work.bytes >= 0;
  const std::string id = std::to_string(work.id);
  const auto ns = static_cast<std::int64_t>(work.event.value);
  const std::int64_t launch_ns = std::min<std::int64_t>(1, ns);
  const std::int64_t begin_ns = work.event.begin_ns + launch_ns;
  const RowPlace& host = work.host;
  const int stream = kFirstStream + work.event.thread;
  const RowPlace device{.process = rank, .thread = stream};
  const std::int64_t arrow = arrow_id(rank, work.id);
  const std::string ids = "\"External id\": " + id + ", \"correlation\": " + id;
  std::string args = ids + ", \"queued\": 0, \"device\": " + std::to_string(rank) +
                     ", \"context\": 1, \"stream\": " + std::to_string(stream);
  if (copies) {
    const double rate = ns == 0 ? 0.0 : static_cast<double>(work.bytes) / static_cast<double>(ns);
    args += ", \"bytes\": " + std::to_string(work.bytes) +
            ", \"memory bandwidth (GB/s)\": " + Json(rate).dump();
  } else {
    args += ", \"grid\": [1, 1, 1], \"block\": [1, 1, 1]";
  }
  return span_head("cuda_runtime", copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", host) +
         ", \"ts\": " + microseconds(work.event.begin_ns) +
         ", \"dur\": " + microseconds(launch_ns) + ", \"args\": {" + ids + ", \"cbid\": 211}},\n" +
         arrow_row({"s", "ac2g", arrow, host, work.event.begin_ns}) + ",\n" +
         span_head(copies ? "gpu_memcpy" : "kernel", work.kernel, device) +
         ", \"ts\": " + microseconds(begin_ns) + ", \"dur\": " + microseconds(ns - launch_ns) +
         ", \"args\": {" + args + "}},\n" + arrow_row({"f", "ac2g", arrow, device, begin_ns});
}

std::string device_metadata(std::int64_t rank, int threads) {
  const RowPlace process{.process = rank};
  std::string rows =
      metadata_row("process_name", process, R"({"name": "train"})") + ",\n" +
      metadata_row("process_labels", process, "{\"labels\": " + quoted_text(kAsDevice) + "}") +
      ",\n" + metadata_row("process_sort_index", process, R"({"sort_index": 1})");
  for (int i = 0; i < threads; ++i) {
    const int stream = kFirstStream + i;
    rows += ",\n" + metadata_row("thread_name", {rank, stream},
                                 R"({"name": "stream )" + std::to_string(stream) + "\"}");
  }
  return rows;
}

std::string device_properties(std::int64_t rank) {
  return "{\"id\": " + std::to_string(rank) + ", \"name\": " + quoted_text(kAsDevice) +
         R"(, "totalGlobalMem": 0, )"
         R"("computeMajor": 0, "computeMinor": 0, "numSms": 1, "warpSize": 1, )"
         R"("maxThreadsPerBlock": 1, "maxThreadsPerMultiprocessor": 1, "regsPerBlock": 0, )"
         R"("regsPerMultiprocessor": 0, "sharedMemPerBlock": 0, "sharedMemPerMultiprocessor": 0})";
}

}  // namespace trainscope::profiler
