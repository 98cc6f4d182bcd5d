// getrusage, the process's clock, and /proc/self/statm.
#include "profiler/record/system_counters.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <ctime>
#include <string_view>

namespace trainscope::profiler {
namespace {

// The second number of the file: pages. Without a stream, which would allocate.
std::int64_t resident_bytes() {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text = {};
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  if (size <= 0) return 0;
  const std::string_view line(text.data(), static_cast<std::size_t>(size));
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return 0;
  std::int64_t pages = 0;
  std::from_chars(line.data() + blank + 1, line.data() + line.size(), pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

SystemCounters read_system_counters() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return {.task_clock_ns = std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec,
          .minor_faults = usage.ru_minflt,
          .major_faults = usage.ru_majflt,
          .voluntary_switches = usage.ru_nvcsw,
          .forced_switches = usage.ru_nivcsw,
          .resident_bytes = resident_bytes()};
}

}  // namespace trainscope::profiler
