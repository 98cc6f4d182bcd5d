// What the operating system counts of this process: processor time, page faults, switches, memory.
#pragma once

#include <cstdint>

namespace trainscope::profiler {

// Since the process began, of all its threads; but memory as it is now.
struct SystemCounters {
  std::int64_t task_clock_ns = 0;
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;
  std::int64_t voluntary_switches = 0;
  std::int64_t forced_switches = 0;
  std::int64_t resident_bytes = 0;  // 0 where the system does not say
};

SystemCounters read_system_counters();

}  // namespace trainscope::profiler
