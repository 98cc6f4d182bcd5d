// First fit where any two buffers may or may not share bytes: no intervals needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/streams/clocks.h"

namespace trainscope::memplan {

struct Fit {
  std::vector<std::int64_t> offsets = {};  // by buffer; 0 of what is not in the order
  std::int64_t height_bytes = std::numeric_limits<std::int64_t>::max();
};

struct FitLimits {
  std::uint64_t most_visits = std::numeric_limits<std::uint64_t>::max();  // of all fits together
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();     // of height
};

class StreamFitter {
 public:
  // `sizes` in bytes, by buffer: multiples of the alignment.
  StreamFitter(StreamLifetimes lifetimes, std::vector<std::int64_t> sizes)
      : lifetimes_(std::move(lifetimes)), sizes_(std::move(sizes)) {}

  [[nodiscard]] const StreamLifetimes& lifetimes() const { return lifetimes_; }
  [[nodiscard]] const std::vector<std::int64_t>& sizes() const { return sizes_; }

  // Each buffer of the order at the lowest address that is free of those before it that it meets.
  // Nothing beyond a limit.
  [[nodiscard]] std::optional<Fit> fit(const std::vector<std::size_t>& order,
                                       const FitLimits& limits);

  // Always the buffer that comes to lie lowest, on top of all that it meets so far, and of those
  // the first in the order: a skyline. Nothing beyond a limit.
  [[nodiscard]] std::optional<Fit> stack(const std::vector<std::size_t>& order,
                                         const FitLimits& limits);

  // Pairs of buffers compared so far: the work done.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }

 private:
  StreamLifetimes lifetimes_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> placed_;  // by address
  std::uint64_t visits_ = 0;
};

}  // namespace trainscope::memplan
