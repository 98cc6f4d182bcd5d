// What the operating system counts of this process: processor time, page faults, switches, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

// Ticks for which a hypervisor gave processors of this machine to others while they had work, since
// the machine began, all processors together: by the text of /proc/stat (proc(5): "steal", the
// eighth number of the line "cpu"). None: the text does not have it.
std::optional<std::int64_t> stolen_ticks(std::string_view proc_stat);

// That time, from one reading to the next. The system counts it in ticks, of 10 ms as a rule, and
// writes its file for some 30 microseconds: more readings than one in a tick would tell no more.
class StolenTime {
 public:
  // `file` is /proc/stat but in tests.
  explicit StolenTime(const char* file = "/proc/stat") : file_(file) {}

  // Nanoseconds of all processors since the last reading; none where there was no reading yet, the
  // last one is not yet a tick old at `now_ns` of the monotonic clock, or the system does not tell.
  std::optional<std::int64_t> since_last(std::int64_t now_ns);

 private:
  const char* file_;
  std::int64_t tick_ns_ = 0;
  std::int64_t read_ns_ = 0;  // when it was read last
  std::optional<std::int64_t> ticks_ = {};
};

}  // namespace trainscope::profiler
