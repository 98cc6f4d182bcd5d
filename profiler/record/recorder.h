// Recorder: spans of several threads, kept in memory until the thread that drives them asks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "profiler/record/clock.h"
#include "profiler/record/event.h"

namespace trainscope::profiler {

// A lane belongs to one thread at a time, which begins and ends its spans. Neither allocates, waits
// or throws. Memory is bounded: what finds its lane full is counted, and left out.
class Recorder {
 public:
  static constexpr std::size_t kLaneEvents = std::size_t{1} << 17;  // 3 MiB, touched as it fills

  // `lane_events` is a power of two.
  explicit Recorder(int lanes, std::size_t lane_events = kLaneEvents, Clock clock = Clock());

  int lanes() const { return static_cast<int>(lanes_.size()); }
  const Clock& clock() const { return clock_; }
  // The time 0 of events, by the system's monotonic clock.
  std::int64_t origin_ns() const { return map_.first_ns(); }

  // What a lane that there is not begins, ends and counts is left out.
  void begin(int lane, EventKind kind, std::uint32_t id) {
    if (lane >= lanes()) return;
    Lane& in = lanes_[static_cast<std::size_t>(lane)];
    begin_at(now(in), in, kind, id);
  }
  // The span that was begun last and has not ended.
  void end(int lane) {
    if (lane >= lanes()) return;
    Lane& in = lanes_[static_cast<std::size_t>(lane)];
    end_at(now(in), in);
  }
  // Ends that span and begins the next one at the same moment.
  void end_and_begin(int lane, EventKind kind, std::uint32_t id) {
    if (lane >= lanes()) return;
    Lane& in = lanes_[static_cast<std::size_t>(lane)];
    const std::uint64_t tick = now(in);
    end_at(tick, in);
    begin_at(tick, in, kind, id);
  }
  // A value of lane 0, now.
  void count(EventKind kind, std::uint32_t id, double value) {
    put(lanes_[0], {.begin = now(lanes_[0]),
                    .end = std::bit_cast<std::uint64_t>(value),
                    .id = id,
                    .kind = kind});
  }
  // Nothing is open any more; what was open is left out.
  void forget_open();

  // Ended spans and values that wait to be taken, of the fullest lane.
  std::size_t waiting() const;
  // Takes them: gives all that ended before, lane after lane, in pieces of at most kPiece events,
  // each lane's in the order of their ends. By one thread at a time; the others may go on.
  using Take = std::function<void(std::span<const Event>)>;
  void drain(const Take& take);
  // Spans and values that were left out so far because a lane was full, or a span too deep.
  std::uint64_t dropped() const;

  static constexpr std::size_t kPiece = std::size_t{1} << 14;

 private:
  static constexpr std::uint32_t kDepth = 32;
  struct Raw {
    std::uint64_t begin;  // ticks
    std::uint64_t end;    // of a counter its value
    std::uint32_t id;
    EventKind kind;
  };
  struct Open {
    std::uint64_t begin;
    std::uint32_t id;
    EventKind kind;
  };
  struct alignas(64) Lane {
    std::unique_ptr<Raw[]> ring;
    std::atomic<std::uint64_t> head = 0;  // the next to be written
    std::atomic<std::uint64_t> tail = 0;  // the next to be taken
    std::atomic<std::uint64_t> dropped = 0;
    std::uint64_t last = 0;  // tick that its thread read
    std::uint32_t depth = 0;
    std::array<Open, kDepth> open;
  };
  static_assert(sizeof(Raw) == 24);

  std::uint64_t now(Lane& in) const { return in_order(clock_.ticks(), in.last); }
  static void begin_at(std::uint64_t tick, Lane& in, EventKind kind, std::uint32_t id) {
    const std::uint32_t depth = in.depth++;
    if (depth < kDepth) in.open[depth] = {.begin = tick, .id = id, .kind = kind};
  }
  void end_at(std::uint64_t tick, Lane& in) {
    if (in.depth == 0) return;
    const std::uint32_t depth = --in.depth;
    if (depth < kDepth) {
      const Open& open = in.open[depth];
      put(in, {.begin = open.begin, .end = tick, .id = open.id, .kind = open.kind});
    } else {
      in.dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void put(Lane& in, const Raw& raw) {
    const std::uint64_t head = in.head.load(std::memory_order_relaxed);
    if (head - in.tail.load(std::memory_order_acquire) > mask_) [[unlikely]] {
      in.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    in.ring[head & mask_] = raw;
    in.head.store(head + 1, std::memory_order_release);
  }
  void drain_lane(std::uint16_t thread, const Take& take);
  void look_at_clock();

  Clock clock_;
  std::uint64_t mask_;
  std::vector<Lane> lanes_;
  TickMap map_;
  std::vector<Event> piece_;
};

}  // namespace trainscope::profiler
