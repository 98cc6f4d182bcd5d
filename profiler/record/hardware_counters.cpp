// perf_event_open: a group of counters of one thread.
#include "profiler/record/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trainscope::profiler {
namespace {

constexpr std::array<std::uint64_t, kHardwareKinds.size()> kConfigs = {
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_MISSES,
    PERF_COUNT_HW_BRANCH_MISSES};
constexpr std::size_t kHead = 3;  // words before the counts

int open_counter(std::uint64_t config, int group) {
  perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = config;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

std::optional<HardwareValues> decode_counters(std::span<const std::uint64_t> words) {
  HardwareValues values = {};
  if (words.size() < kHead + values.size() || words[0] != values.size()) return std::nullopt;
  const auto wanted = static_cast<double>(words[1]);
  const auto ran = static_cast<double>(words[2]);
  if (ran <= 0.0) return std::nullopt;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(words[kHead + i]) * (wanted / ran);
  }
  return values;
}

HardwareCounters::HardwareCounters() {
  files_.fill(-1);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i] = open_counter(kConfigs[i], files_[0]);
    if (files_[i] >= 0) continue;
    why_not_ = std::strerror(errno);
    close();
    return;
  }
}

HardwareCounters::~HardwareCounters() { close(); }

void HardwareCounters::close() {
  for (int& file : files_) {
    if (file >= 0) ::close(file);
    file = -1;
  }
}

std::optional<HardwareValues> HardwareCounters::read() const {
  if (!are_open()) return std::nullopt;
  std::array<std::uint64_t, kHead + kHardwareKinds.size()> words = {};
  const ssize_t size = ::read(files_[0], words.data(), sizeof(words));
  if (size < 0) return std::nullopt;
  return decode_counters(
      std::span(words).first(static_cast<std::size_t>(size) / sizeof(std::uint64_t)));
}

}  // namespace trainscope::profiler
