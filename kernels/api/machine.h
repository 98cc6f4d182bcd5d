// What a machine reaches in a second: a back end measures it, planners weigh time with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/api/dtype.h"

namespace trainscope {

// Something per second: what one core reaches, and all cores together.
struct Rate {
  double one = 0.0;
  double all = 0.0;

  bool operator==(const Rate&) const = default;
};

// A cache or the memory. Bytes per second that are read, written, copied, and updated in place:
// read and written where they lie. Those of a copy and of an update count twice, as they are read
// and as they are written. A store to bytes that nobody has read fetches their line first, so a
// copy moves more than an update of as many bytes.
struct MemoryLevel {
  std::string name;        // "L1", "L2", "L3", "memory"
  std::int64_t bytes = 0;  // of a cache: of one core's, or of the one that cores share
  Rate read;
  Rate write;
  Rate copy;
  std::optional<Rate> update = {};  // none: of a machine that was measured by an older program

  // Of bytes that are read and written in place; that of a copy where nobody measured it.
  const Rate& in_place() const { return update ? *update : copy; }

  bool operator==(const MemoryLevel&) const = default;
};

// The way to host memory and back. A transfer of n bytes takes n / bytes_per_second and
// seconds_per_transfer, in which nothing else runs. Unless somebody knows better it is that of a
// device on a bus.
struct HostLink {
  double bytes_per_second = 10e9;
  double seconds_per_transfer = 10e-6;

  double seconds(std::int64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second + seconds_per_transfer;
  }
  bool operator==(const HostLink&) const = default;
};

// Invariants, which the reader of machine files checks: there is a rate for f32, and at least one
// level, the last one being memory; levels are in the order of their sizes; all numbers are above
// 0.
struct Machine {
  std::string name;
  int cores = 1;
  std::vector<MemoryLevel> levels;  // the quickest first
  std::map<DType, Rate> flops_per_second;
  // Dtypes that kernels compute with and that have no rate of their own, and why, in half a
  // sentence.
  std::map<DType, std::string> without_flops = {};
  double seconds_per_call = 0.0;  // that a kernel call takes besides its work
  double seconds_per_fork = 0.0;  // that cores take to share out work and to meet at its end
  HostLink host_link = {};

  // Those of f32 where the dtype has none of its own.
  const Rate& flops(DType dtype) const {
    const auto own = flops_per_second.find(dtype);
    return own != flops_per_second.end() ? own->second : flops_per_second.at(DType::kF32);
  }
  const MemoryLevel& memory() const { return levels.back(); }

  bool operator==(const Machine&) const = default;
};

// How a machine is measured.
struct MeasureOptions {
  int threads = 1;        // which are all cores
  double seconds = 0.06;  // of each of some forty measurements
  // The most memory that is used.
  std::size_t most_bytes = std::size_t{1} << 30;
};

}  // namespace trainscope
