// What a device was at, moment by moment: of a profile whose calls its own library has recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/store/event_file.h"

namespace trainscope::profiler {

class DeviceTime {
 public:
  // None where the driving thread has calls of its own.
  explicit DeviceTime(const EventView& events);

  bool is_empty() const { return pieces_.empty(); }
  // How long it was at calls from one nanosecond of the profile to another.
  std::int64_t within(std::int64_t begin_ns, std::int64_t end_ns) const;
  // Calls f(call, nanoseconds) for each of these. Of calls side by side a moment is of the first.
  template <class F>
  void each(std::int64_t begin_ns, std::int64_t end_ns, F f) const {
    for (std::size_t i = first_after(begin_ns); i < pieces_.size(); ++i) {
      if (pieces_[i].begin_ns >= end_ns) break;
      const std::int64_t ns = part(pieces_[i], begin_ns, end_ns);
      if (ns > 0) f(pieces_[i].call, ns);
    }
  }

 private:
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t call = 0;
    std::int64_t before_ns = 0;  // of all pieces before it
  };
  static std::int64_t part(const Piece& piece, std::int64_t begin_ns, std::int64_t end_ns);
  std::size_t first_after(std::int64_t ns) const;  // the first piece that ends behind it
  std::int64_t until(std::int64_t ns) const;

  std::vector<Piece> pieces_;  // one behind the other
};

}  // namespace trainscope::profiler
