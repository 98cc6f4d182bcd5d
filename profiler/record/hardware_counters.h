// What the processor counts of the calling thread, where the system lets a program read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "profiler/record/event.h"

namespace trainscope::profiler {

inline constexpr std::array kHardwareKinds = {EventKind::kCycles, EventKind::kInstructions,
                                              EventKind::kCacheMisses, EventKind::kBranchMisses};
using HardwareValues = std::array<double, kHardwareKinds.size()>;

// What the kernel gives for a group of counters: their number, the nanoseconds that they were
// wanted, those that they ran (others may have had the processor's counters meanwhile), then each
// one's count. Counts are scaled up by wanted / ran. None for a group of another size, and for one
// that never ran.
std::optional<HardwareValues> decode_counters(std::span<const std::uint64_t> words);

class HardwareCounters {
 public:
  // Opens them for the calling thread; what refused them is in why_not().
  HardwareCounters();
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  bool are_open() const { return files_[0] >= 0; }
  const std::string& why_not() const { return why_not_; }
  // Since they were opened; none where they are not open or did not run.
  std::optional<HardwareValues> read() const;

 private:
  void close();

  std::array<int, kHardwareKinds.size()> files_;
  std::string why_not_;
};

}  // namespace trainscope::profiler
