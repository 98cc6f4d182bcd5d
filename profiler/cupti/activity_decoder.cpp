// Each record is copied out: a buffer may lie anywhere.
#include "profiler/cupti/activity_decoder.h"

#include <cstring>

namespace trainscope::profiler {
namespace {

template <typename Record>
Record record_at(std::span<const std::byte> bytes) {
  Record record;
  std::memcpy(static_cast<void*>(&record), bytes.data(), sizeof(Record));
  return record;
}

void give(ActivityKind kind, std::span<const std::byte> bytes, ActivitySink& sink) {
  switch (kind) {
    case ActivityKind::kKernel:
      return sink.kernel(record_at<KernelRecord>(bytes));
    case ActivityKind::kCopy:
      return sink.copy(record_at<CopyRecord>(bytes));
    case ActivityKind::kSet:
      return sink.set(record_at<SetRecord>(bytes));
    case ActivityKind::kGraph:
      return sink.graph(record_at<GraphRecord>(bytes));
    case ActivityKind::kDriverCall:
    case ActivityKind::kRuntimeCall:
      return sink.api_call(record_at<ApiRecord>(bytes));
    case ActivityKind::kExternalCorrelation:
      return sink.external_correlation(record_at<ExternalCorrelationRecord>(bytes));
    case ActivityKind::kSynchronization:
      return sink.synchronization(record_at<SynchronizationRecord>(bytes));
    case ActivityKind::kOverhead:
      return sink.overhead(record_at<OverheadRecord>(bytes));
    case ActivityKind::kMemory:
      return sink.memory(record_at<MemoryRecord>(bytes));
  }
}

std::string at_byte(std::size_t offset) { return " at byte " + std::to_string(offset); }

}  // namespace

std::size_t record_bytes(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::kKernel:
      return sizeof(KernelRecord);
    case ActivityKind::kCopy:
      return sizeof(CopyRecord);
    case ActivityKind::kSet:
      return sizeof(SetRecord);
    case ActivityKind::kGraph:
      return sizeof(GraphRecord);
    case ActivityKind::kDriverCall:
    case ActivityKind::kRuntimeCall:
      return sizeof(ApiRecord);
    case ActivityKind::kExternalCorrelation:
      return sizeof(ExternalCorrelationRecord);
    case ActivityKind::kSynchronization:
      return sizeof(SynchronizationRecord);
    case ActivityKind::kOverhead:
      return sizeof(OverheadRecord);
    case ActivityKind::kMemory:
      return sizeof(MemoryRecord);
  }
  return 0;
}

ActivityReading decode_activities(std::span<const std::byte> valid, ActivitySink& sink) {
  ActivityReading reading;
  while (reading.read_bytes < valid.size()) {
    const std::span<const std::byte> rest = valid.subspan(reading.read_bytes);
    if (rest.size() < sizeof(ActivityKind)) {
      reading.fault = "the buffer ends within the record" + at_byte(reading.read_bytes);
      break;
    }
    const auto kind = record_at<ActivityKind>(rest);
    const std::size_t bytes = record_bytes(kind);
    if (bytes == 0) {
      reading.fault = "the record" + at_byte(reading.read_bytes) + " has kind " +
                      std::to_string(static_cast<std::uint32_t>(kind)) + ", which is not known";
      break;
    }
    if (rest.size() < bytes) {
      reading.fault = "the buffer ends within the record" + at_byte(reading.read_bytes);
      break;
    }
    give(kind, rest, sink);
    reading.read_bytes += bytes;
    ++reading.records;
  }
  return reading;
}

}  // namespace trainscope::profiler
