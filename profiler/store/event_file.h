// events.cols: events of one session of a run, in columns, written piece by piece and readable at
// any time (docs/run-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profiler/record/event.h"

namespace trainscope::profiler {

// Raised when an older reader would misread the file; a new kind of event does not raise it.
inline constexpr std::uint32_t kEventFileVersion = 1;
inline constexpr std::size_t kMostChunkEvents = std::size_t{1} << 20;

// What is known when a file begins.
struct EventFileFacts {
  std::int64_t start_unix_ns = 0;  // the time of day at which event times are 0
  // As many as are known then. Read, as many as any event has: of a device come more.
  std::uint32_t threads = 1;
  std::uint32_t tick_source = 0;  // a TickSource
};

// Makes the file's bytes; `write` puts them behind those before, or throws.
class EventWriter {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;

  // Writes the header.
  EventWriter(const EventFileFacts& facts, Write write);

  // One chunk with one call of `write`. `dropped`: events that were left out since the beginning.
  // At most kMostChunkEvents.
  void add(std::span<const Event> events, std::uint64_t dropped);

 private:
  Write write_;
  std::vector<std::byte> chunk_;
};

// A chunk's columns, where they lie in the file.
struct EventChunk {
  std::span<const std::int64_t> begin_ns;
  std::span<const std::uint64_t> value;
  std::span<const std::uint32_t> id;
  std::span<const EventKind> kind;
  std::span<const std::uint16_t> thread;
  std::int64_t first_ns = 0;  // the least begin
  std::int64_t last_ns = 0;   // the greatest end

  std::size_t size() const { return begin_ns.size(); }
  Event event(std::size_t i) const {
    return {.begin_ns = begin_ns[i],
            .value = value[i],
            .id = id[i],
            .kind = kind[i],
            .thread = thread[i]};
  }
};

// What of a file can be read: a view of its chunks.
struct EventView {
  std::shared_ptr<const void> holder = {};  // of the bytes that they lie in; null: of borrowed ones
  EventFileFacts facts = {};
  std::vector<EventChunk> chunks = {};
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;     // that were left out while they were recorded
  std::uint64_t torn_bytes = 0;  // of a chunk at the end that is not whole, and is skipped
};

enum class ReadFault : std::uint8_t { kNone, kDamaged, kNewer };

struct EventReading {
  EventView view = {};
  ReadFault fault = ReadFault::kNone;
  std::string message = {};  // what is wrong, and where; empty: nothing
};

// `bytes` begin at a multiple of eight; the view gets a share of their holder. A file that ends
// within its header or within a chunk is still being written, or was when the power went: what is
// before that is the file.
EventReading read_events(std::span<const std::byte> bytes,
                         std::shared_ptr<const void> holder = nullptr);

}  // namespace trainscope::profiler
