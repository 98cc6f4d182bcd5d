// The records of an activity buffer, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "profiler/cupti/activity_records.h"

namespace trainscope::profiler {

// Who takes what a buffer holds.
class ActivitySink {
 public:
  virtual ~ActivitySink() = default;
  virtual void kernel(const KernelRecord& record) = 0;
  virtual void copy(const CopyRecord& record) = 0;
  virtual void set(const SetRecord& record) = 0;
  virtual void graph(const GraphRecord& record) = 0;
  virtual void api_call(const ApiRecord& record) = 0;
  virtual void external_correlation(const ExternalCorrelationRecord& record) = 0;
  virtual void synchronization(const SynchronizationRecord& record) = 0;
  virtual void overhead(const OverheadRecord& record) = 0;
  virtual void memory(const MemoryRecord& /*record*/) {}
};

struct ActivityReading {
  std::uint64_t records = 0;
  std::size_t read_bytes = 0;
  // What stopped the reading before the end, and where; empty: nothing. The length of a record is
  // known by its kind alone, so that none behind an unknown one can be found.
  std::string fault = {};
};

// `valid`: the bytes of the buffer that the library has filled.
ActivityReading decode_activities(std::span<const std::byte> valid, ActivitySink& sink);

// Bytes of a record; 0: of a kind that is not known.
std::size_t record_bytes(ActivityKind kind);

}  // namespace trainscope::profiler
