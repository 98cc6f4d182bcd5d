// Lanes, and what is taken from them.
#include "profiler/record/recorder.h"

#include <algorithm>

namespace trainscope::profiler {

Recorder::Recorder(int lanes, std::size_t lane_events, Clock clock)
    : clock_(clock),
      mask_(lane_events - 1),
      lanes_(static_cast<std::size_t>(lanes)),
      map_(clock_.pair()) {
  for (Lane& lane : lanes_) lane.ring = std::make_unique_for_overwrite<Raw[]>(lane_events);
  piece_.reserve(kPiece);
}

void Recorder::forget_open() {
  for (Lane& lane : lanes_) lane.depth = 0;
}

std::size_t Recorder::waiting() const {
  std::size_t most = 0;
  for (const Lane& lane : lanes_) {
    most = std::max(most, static_cast<std::size_t>(lane.head.load(std::memory_order_acquire) -
                                                   lane.tail.load(std::memory_order_relaxed)));
  }
  return most;
}

std::uint64_t Recorder::dropped() const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.dropped.load(std::memory_order_relaxed);
  return sum;
}

// Waits, two milliseconds at most, until the time since the last look is long enough to measure.
void Recorder::look_at_clock() {
  while (!map_.is_due(Clock::monotonic_ns())) {
  }
  map_.add(clock_.pair());
}

void Recorder::drain_lane(std::uint16_t thread, const Take& take) {
  Lane& lane = lanes_[thread];
  const std::uint64_t head = lane.head.load(std::memory_order_acquire);
  std::uint64_t tail = lane.tail.load(std::memory_order_relaxed);
  while (tail != head) {
    piece_.clear();
    const std::uint64_t end = std::min<std::uint64_t>(head, tail + kPiece);
    for (; tail != end; ++tail) {
      const Raw& raw = lane.ring[tail & mask_];
      const std::int64_t begin = map_.ns(raw.begin);
      const bool is_value = is_counter(raw.kind);
      piece_.push_back(
          {.begin_ns = begin,
           .value = is_value ? raw.end : static_cast<std::uint64_t>(map_.ns(raw.end) - begin),
           .id = raw.id,
           .kind = raw.kind,
           .thread = thread});
    }
    lane.tail.store(tail, std::memory_order_release);
    take(piece_);
  }
}

void Recorder::drain(const Take& take) {
  if (waiting() == 0) return;
  look_at_clock();
  for (std::size_t i = 0; i < lanes_.size(); ++i) drain_lane(static_cast<std::uint16_t>(i), take);
}

}  // namespace trainscope::profiler
