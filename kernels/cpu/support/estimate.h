// Sums of what a kernel computes and moves, for Kernel::estimate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// An Estimate in the making. Counts beyond 63 bits are the largest number in the end.
struct Work {
  double flops = 0.0;
  double bytes_read = 0.0;
  double bytes_written = 0.0;

  Work() = default;
  Work(double flops_done, double read, double written)
      : flops(flops_done), bytes_read(read), bytes_written(written) {}
  explicit Work(const Estimate& of)
      : flops(static_cast<double>(of.flops)),
        bytes_read(static_cast<double>(of.bytes_read)),
        bytes_written(static_cast<double>(of.bytes_written)) {}

  Work& operator+=(const Work& more) {
    flops += more.flops;
    bytes_read += more.bytes_read;
    bytes_written += more.bytes_written;
    return *this;
  }
  // A copy: what is read and what is written of it.
  void add_copy(double read, double written) { *this += {0.0, read, written}; }
  // Bytes of the workspace that are written and read once.
  void add_passed_on(double bytes) { add_copy(bytes, bytes); }

  Estimate estimate() const {
    const auto count = [](double n) {
      constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
      return n < static_cast<double>(kMost) ? static_cast<std::int64_t>(n) : kMost;
    };
    return {.flops = count(flops),
            .bytes_read = count(bytes_read),
            .bytes_written = count(bytes_written)};
  }
};

template <class... Factors>
constexpr double multiplied(Factors... factors) {
  return (1.0 * ... * static_cast<double>(factors));
}

inline double bytes_of(const TensorView& view) {
  return view.present ? static_cast<double>(view.type.bytes()) : 0.0;
}
inline double bytes_of(std::span<const TensorView> views) {
  double bytes = 0.0;
  for (const TensorView& view : views) bytes += bytes_of(view);
  return bytes;
}

// So many FLOPs on operands that are read and written once.
inline Work once_through(const PrepareArgs& args, double flops) {
  return {flops, bytes_of(args.inputs), bytes_of(args.outputs)};
}

// `share` of a definition's cost.
inline Estimate share_of(const Estimate& whole, double share) {
  const Work work(whole);
  return Work(work.flops * share, work.bytes_read * share, work.bytes_written * share).estimate();
}

}  // namespace trainscope::cpu
