// getrusage, the process's clock, /proc/self/statm and /proc/stat.
#include "profiler/record/system_counters.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

namespace trainscope::profiler {
namespace {

// What a file begins with. Without a stream, which would allocate.
using Head = std::array<char, 256>;
std::string_view read_head(const char* path, Head& head) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, head.data(), head.size());
  ::close(file);
  return {head.data(), size <= 0 ? 0 : static_cast<std::size_t>(size)};
}

// The second number of the file: pages.
std::int64_t resident_bytes() {
  Head head;
  const std::string_view line = read_head("/proc/self/statm", head);
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

std::optional<std::int64_t> stolen_ticks(std::string_view proc_stat) {
  constexpr std::string_view kAll = "cpu ";
  constexpr int kSteal = 8;
  if (!proc_stat.starts_with(kAll)) return std::nullopt;
  const std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  const char* at = line.data() + kAll.size();
  const char* const end = line.data() + line.size();
  std::int64_t number = 0;
  for (int column = 1; column <= kSteal; ++column) {
    while (at != end && *at == ' ') ++at;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return std::nullopt;
    at = behind;
  }
  return number;
}

std::optional<std::int64_t> StolenTime::since_last(std::int64_t now_ns) {
  if (tick_ns_ == 0) tick_ns_ = std::int64_t{1'000'000'000} / ::sysconf(_SC_CLK_TCK);
  if (read_ns_ != 0 && now_ns - read_ns_ < tick_ns_) return std::nullopt;
  Head head;
  const std::optional<std::int64_t> before =
      std::exchange(ticks_, stolen_ticks(read_head(file_, head)));
  read_ns_ = now_ns;
  if (!before || !ticks_) return std::nullopt;
  return (*ticks_ - *before) * tick_ns_;
}

}  // namespace trainscope::profiler
