// Spans of all threads of the device, cut so that none is beside another.
#include "profiler/analysis/device_time.h"

#include <algorithm>

namespace trainscope::profiler {

DeviceTime::DeviceTime(const EventView& events) {
  std::vector<Event> spans;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] != EventKind::kCall) continue;
      if (chunk.thread[i] == 0) return;
      spans.push_back(chunk.event(i));
    }
  }
  std::ranges::sort(spans, [](const Event& a, const Event& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.thread < b.thread;
  });
  std::int64_t before_ns = 0;
  for (const Event& span : spans) {
    const std::int64_t begin_ns =
        pieces_.empty() ? span.begin_ns : std::max(span.begin_ns, pieces_.back().end_ns);
    if (span.end_ns() <= begin_ns) continue;
    pieces_.push_back(
        {.begin_ns = begin_ns, .end_ns = span.end_ns(), .call = span.id, .before_ns = before_ns});
    before_ns += span.end_ns() - begin_ns;
  }
}

std::int64_t DeviceTime::part(const Piece& piece, std::int64_t begin_ns, std::int64_t end_ns) {
  return std::min(piece.end_ns, end_ns) - std::max(piece.begin_ns, begin_ns);
}

std::size_t DeviceTime::first_after(std::int64_t ns) const {
  const auto found = std::ranges::upper_bound(pieces_, ns, {}, &Piece::end_ns);
  return static_cast<std::size_t>(found - pieces_.begin());
}

// Of all that lies before.
std::int64_t DeviceTime::until(std::int64_t ns) const {
  const std::size_t i = first_after(ns);
  if (i == pieces_.size()) {
    return pieces_.empty()
               ? 0
               : pieces_.back().before_ns + part(pieces_.back(), pieces_.back().begin_ns, ns);
  }
  return pieces_[i].before_ns + std::max<std::int64_t>(0, ns - pieces_[i].begin_ns);
}

std::int64_t DeviceTime::within(std::int64_t begin_ns, std::int64_t end_ns) const {
  return end_ns <= begin_ns ? 0 : until(end_ns) - until(begin_ns);
}

}  // namespace trainscope::profiler
