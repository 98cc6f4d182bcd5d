// Spans of all threads of the device, cut so that none is beside another.
#include "profiler/analysis/device_time.h"

namespace trainscope::profiler {

bool are_calls_of_device(const EventView& events) {
  bool has_calls = false;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] != EventKind::kCall) continue;
      if (chunk.thread[i] == 0) return false;
      has_calls = true;
    }
  }
  return has_calls;
}

DeviceTime::DeviceTime(const EventView& events) {
  if (!are_calls_of_device(events)) return;
  std::vector<Event> spans;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] == EventKind::kCall) spans.push_back(chunk.event(i));
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

std::size_t DeviceTime::first_after(std::int64_t ns) const {
  const auto found = std::ranges::upper_bound(pieces_, ns, {}, &Piece::end_ns);
  return static_cast<std::size_t>(found - pieces_.begin());
}

// Of all that lies before.
std::int64_t DeviceTime::until(std::int64_t ns) const {
  const std::size_t i = first_after(ns);
  if (i < pieces_.size()) {
    return pieces_[i].before_ns + std::max<std::int64_t>(0, ns - pieces_[i].begin_ns);
  }
  if (pieces_.empty()) return 0;
  const Piece& last = pieces_.back();
  return last.before_ns + (last.end_ns - last.begin_ns);
}

std::int64_t DeviceTime::within(std::int64_t begin_ns, std::int64_t end_ns) const {
  return end_ns <= begin_ns ? 0 : until(end_ns) - until(begin_ns);
}

}  // namespace trainscope::profiler
