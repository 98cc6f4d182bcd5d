// What a profile measured of memory: the arena's bytes that were bound at each time of the plan,
// and the process's memory after each step.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

struct ResidentBytes {
  std::uint32_t step = 0;
  std::int64_t bytes = 0;
  std::int64_t more_bytes = 0;  // than after the profiled step before; 0 of the first
};

struct MeasuredMemory {
  // By the plan's time, of the first profiled step; empty where it was not recorded.
  std::vector<std::int64_t> bound = {};
  std::vector<ResidentBytes> resident = {};  // by step

  bool empty() const { return bound.empty() && resident.empty(); }
  std::int64_t most_bound() const;  // 0 where it was not recorded
};

// Numbers that are no counts of bytes, and times that the plan has not, are left out.
MeasuredMemory measured_memory(const EventView& events, const PlanView& plan);

}  // namespace trainscope::profiler
