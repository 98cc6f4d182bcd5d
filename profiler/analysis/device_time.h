// What a device was at, moment by moment: of a profile whose calls its own library has recorded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// Whether a device's own library recorded the calls: the driving thread has none, other threads of
// the profile, which stand for streams, have them.
bool are_calls_of_device(const EventView& events);

class DeviceTime {
 public:
  DeviceTime() = default;
  // None where the driving thread has calls of its own.
  explicit DeviceTime(const EventView& events);

  bool is_empty() const { return pieces_.empty(); }
  // How long it was at calls from one nanosecond of the profile to another.
  std::int64_t within(std::int64_t begin_ns, std::int64_t end_ns) const;
  // Calls f(call, begin, end) for each piece of these, one behind the other. Of calls side by side
  // a moment is of the first.
  template <class F>
  void each_piece(std::int64_t begin_ns, std::int64_t end_ns, F f) const {
    for (std::size_t i = first_after(begin_ns); i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (piece.begin_ns >= end_ns) break;
      const std::int64_t from = std::max(piece.begin_ns, begin_ns);
      const std::int64_t to = std::min(piece.end_ns, end_ns);
      if (from < to) f(piece.call, from, to);
    }
  }
  // Calls f(call, nanoseconds) for each of them.
  template <class F>
  void each(std::int64_t begin_ns, std::int64_t end_ns, F f) const {
    each_piece(begin_ns, end_ns, [&f](std::uint32_t call, std::int64_t from, std::int64_t to) {
      f(call, to - from);
    });
  }

 private:
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t call = 0;
    std::int64_t before_ns = 0;  // of all pieces before it
  };
  std::size_t first_after(std::int64_t ns) const;  // the first piece that ends behind it
  std::int64_t until(std::int64_t ns) const;

  std::vector<Piece> pieces_;  // one behind the other
};

}  // namespace trainscope::profiler
