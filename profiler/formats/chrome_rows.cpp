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

std::string span_head(std::string_view category, std::string_view name, const RowPlace& place) {
  return "{\"ph\": \"X\", \"cat\": \"" + std::string(category) +
         "\", \"name\": " + quoted_text(name) + ", " + place_text(place);
}

// Readers tell by the beginning of its name whether a kernel computes, communicates or copies; what
// runs under such a name, of a call that is no copy, computes.
std::string kernel_name(std::string_view kernel) {
  constexpr std::array<std::string_view, 3> kOther = {"nccl", "Memcpy", "Memset"};
  const bool is_taken = std::ranges::any_of(
      kOther, [&](std::string_view beginning) { return kernel.starts_with(beginning); });
  return (is_taken ? "kernel " : "") + std::string(kernel);
}

// When it ran on its stream.
struct StreamTime {
  std::int64_t begin_ns = 0;
  std::int64_t ns = 0;
};

std::string ids_text(const DeviceWork& work) {
  return "\"External id\": " + std::to_string(work.id) +
         ", \"correlation\": " + std::to_string(work.correlation);
}

std::string row_of_work(const DeviceWork& work, const StreamTime& time, std::int64_t rank,
                        const std::string& more) {
  const RowPlace device = stream_place(rank, work.event.thread);
  const bool copies = work.bytes >= 0;
  std::string args = ids_text(work) + ", \"queued\": 0, \"device\": " + std::to_string(rank) +
                     ", \"context\": 1, \"stream\": " + std::to_string(device.thread);
  if (copies) {
    const auto ns = static_cast<double>(work.event.value);
    const double rate = ns == 0.0 ? 0.0 : static_cast<double>(work.bytes) / ns;
    args += ", \"bytes\": " + std::to_string(work.bytes) +
            ", \"memory bandwidth (GB/s)\": " + Json(rate).dump();
  }
  return span_head(copies ? "gpu_memcpy" : "kernel", work.kernel, device) +
         ", \"ts\": " + microseconds(time.begin_ns) + ", \"dur\": " + microseconds(time.ns) +
         ", \"args\": {" + args + more + "}}";
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

const ShownDevice kAsDevice = {
    .name = "CPU rows shown as a device's (--as-device)",
    .properties = R"(, "totalGlobalMem": 0, "computeMajor": 0, "computeMinor": 0, "numSms": 1, )"
                  R"("warpSize": 1, "maxThreadsPerBlock": 1, "maxThreadsPerMultiprocessor": 1, )"
                  R"("regsPerBlock": 0, "regsPerMultiprocessor": 0, "sharedMemPerBlock": 0, )"
                  R"("sharedMemPerMultiprocessor": 0)"};

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

RowPlace stream_place(std::int64_t rank, int thread) {
  return {.process = rank, .thread = kFirstStream + thread};
}

std::int64_t arrow_id(std::int64_t rank, std::int64_t number) { return (rank << 32) + number; }

DeviceWork device_work(const PlanView& plan, const Event& event, std::int64_t id) {
  DeviceWork work{.event = event, .id = id, .correlation = id};
  const bool is_of_call = event.kind == EventKind::kCall || event.kind == EventKind::kDeviceWork;
  if (!is_of_call) {
    const bool to_device = event.kind != EventKind::kRead;
    work.kernel =
        to_device ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)";
    work.bytes = event.id < plan.values.size() ? plan.values[event.id].bytes : 0;
    return work;
  }
  const PlanCall& call = plan.calls[event.id];
  const bool copies = call.kind == PlanCallKind::kStateCopy || call.kind == PlanCallKind::kTransfer;
  work.kernel = copies ? copy_name(plan, call) : kernel_name(kernel_of(plan, call));
  if (copies) work.bytes = call.bytes_written;
  return work;
}

std::string stream_row(const DeviceWork& work, std::int64_t rank, const std::string& more) {
  const StreamTime time{.begin_ns = work.event.begin_ns,
                        .ns = static_cast<std::int64_t>(work.event.value)};
  return row_of_work(work, time, rank, more);
}

// The launch takes the first nanosecond of the time, so that the kernel begins behind it.
std::string device_rows(const DeviceWork& work, const RowPlace& host, std::int64_t rank) {
  const bool copies = work.bytes >= 0;
  const auto ns = static_cast<std::int64_t>(work.event.value);
  const std::int64_t launch_ns = std::min<std::int64_t>(1, ns);
  const StreamTime time{.begin_ns = work.event.begin_ns + launch_ns, .ns = ns - launch_ns};
  const RowPlace device = stream_place(rank, work.event.thread);
  const std::int64_t arrow = arrow_id(rank, work.id);
  const std::string size = copies ? "" : R"(, "grid": [1, 1, 1], "block": [1, 1, 1])";
  return span_head("cuda_runtime", copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", host) +
         ", \"ts\": " + microseconds(work.event.begin_ns) +
         ", \"dur\": " + microseconds(launch_ns) + ", \"args\": {" + ids_text(work) +
         ", \"cbid\": 211}},\n" + arrow_row({"s", "ac2g", arrow, host, work.event.begin_ns}) +
         ",\n" + row_of_work(work, time, rank, size) + ",\n" +
         arrow_row({"f", "ac2g", arrow, device, time.begin_ns});
}

std::string device_metadata(const ShownDevice& device, std::int64_t rank) {
  const RowPlace process{.process = rank};
  return metadata_row("process_name", process, R"({"name": "train"})") + ",\n" +
         metadata_row("process_labels", process, "{\"labels\": " + quoted_text(device.name) + "}") +
         ",\n" + metadata_row("process_sort_index", process, R"({"sort_index": 1})");
}

std::string device_properties(const ShownDevice& device, std::int64_t rank) {
  return "{\"id\": " + std::to_string(rank) + ", \"name\": " + quoted_text(device.name) +
         std::string(device.properties) + "}";
}

std::string stream_name_row(std::int64_t rank, int thread) {
  const RowPlace place = stream_place(rank, thread);
  return metadata_row("thread_name", place,
                      R"({"name": "stream )" + std::to_string(place.thread) + "\"}");
}

}  // namespace trainscope::profiler
