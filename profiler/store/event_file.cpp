// A header, then chunks: each with a head that says how long it is, columns, and a foot with
// what a reader may skip it by and the checksum of all of it.
#include "profiler/store/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "profiler/store/crc32.h"

namespace trainscope::profiler {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are in the file as in memory");

constexpr std::array<char, 8> kMagic = {'T', 'S', 'E', 'V', 'T', 'S', '\r', '\n'};
constexpr std::uint32_t kChunkMagic = 0x4B4E4843;  // "CHNK"
constexpr std::size_t kEventBytes = 24;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kEventFileVersion;
  std::uint32_t threads = 1;
  std::int64_t start_unix_ns = 0;
  std::uint32_t tick_source = 0;
  std::uint32_t crc = 0;  // of the bytes before it
};

struct ChunkHead {
  std::uint32_t magic = kChunkMagic;
  std::uint32_t count = 0;
  std::uint64_t dropped = 0;
  std::uint32_t reserved = 0;
  std::uint32_t crc = 0;  // of the bytes before it
};

struct ChunkFoot {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint32_t count = 0;  // once more: whoever reads from the end finds the chunk's beginning
  std::uint32_t crc = 0;    // of the chunk's bytes before it
};

static_assert(sizeof(Header) == 32 && sizeof(ChunkHead) == 24 && sizeof(ChunkFoot) == 24);

template <typename T>
std::span<const std::byte> bytes_but_crc(const T& row) {
  return std::as_bytes(std::span(&row, 1)).first(sizeof(T) - sizeof(std::uint32_t));
}

// Columns of the widest elements come first, so that each begins at a multiple of its own; eight
// bytes are the least unit of a chunk.
std::size_t columns_bytes(std::size_t count) { return (kEventBytes * count + 7) / 8 * 8; }
std::size_t chunk_bytes(std::size_t count) {
  return sizeof(ChunkHead) + columns_bytes(count) + sizeof(ChunkFoot);
}

template <typename T, typename F>
std::byte* put_column(std::byte* to, std::span<const Event> events, F field) {
  for (const Event& event : events) {
    const T element = field(event);
    std::memcpy(to, &element, sizeof(T));
    to += sizeof(T);
  }
  return to;
}

template <typename T>
std::span<const T> take_column(const std::byte*& at, std::size_t count) {
  const std::span<const T> column(reinterpret_cast<const T*>(at), count);
  at += sizeof(T) * count;
  return column;
}

template <typename T>
T row_at(std::span<const std::byte> bytes, std::size_t offset) {
  T row;
  std::memcpy(&row, bytes.data() + offset, sizeof(T));
  return row;
}

// The longest time that a profile may have, so that sums of two stay in range: some 146 years.
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 2;

// Empty when every span begins and ends within the chunk's time.
std::string time_fault(const EventChunk& chunk) {
  if (chunk.first_ns < -kMostNs || chunk.last_ns > kMostNs || chunk.first_ns > chunk.last_ns) {
    return "its times are out of range";
  }
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::int64_t begin = chunk.begin_ns[i];
    const std::uint64_t most = begin < chunk.first_ns || begin > chunk.last_ns
                                   ? 0
                                   : static_cast<std::uint64_t>(chunk.last_ns - begin);
    const bool is_late = !is_counter(chunk.kind[i]) && chunk.value[i] > most;
    if (begin < chunk.first_ns || begin > chunk.last_ns || is_late) {
      return "event " + std::to_string(i) + " of it is outside of its time";
    }
  }
  return {};
}

EventReading damaged(EventReading reading, std::size_t offset, const std::string& what) {
  reading.view = {};
  reading.fault = ReadFault::kDamaged;
  reading.message = "the chunk at byte " + std::to_string(offset) + " is damaged: " + what;
  return reading;
}

// The chunk whose head is at `offset`, of which all bytes are there. Gives what is wrong with it.
std::string read_chunk(std::span<const std::byte> bytes, std::size_t offset, EventChunk& chunk) {
  const auto head = row_at<ChunkHead>(bytes, offset);
  const std::size_t size = chunk_bytes(head.count);
  const auto foot = row_at<ChunkFoot>(bytes, offset + size - sizeof(ChunkFoot));
  if (crc32(bytes.subspan(offset, size - sizeof(foot.crc))) != foot.crc) {
    return "its checksum is another";
  }
  if (foot.count != head.count) return "its head and its foot have different counts";
  const std::byte* at = bytes.data() + offset + sizeof(ChunkHead);
  chunk.begin_ns = take_column<std::int64_t>(at, head.count);
  chunk.value = take_column<std::uint64_t>(at, head.count);
  chunk.id = take_column<std::uint32_t>(at, head.count);
  chunk.kind = take_column<EventKind>(at, head.count);
  chunk.thread = take_column<std::uint16_t>(at, head.count);
  chunk.first_ns = foot.first_ns;
  chunk.last_ns = foot.last_ns;
  return time_fault(chunk);
}

// Empty for a head as a writer makes it.
std::string head_fault(const ChunkHead& head) {
  if (head.magic != kChunkMagic) return "no chunk begins here";
  if (crc32(bytes_but_crc(head)) != head.crc) return "the checksum of its head is another";
  if (head.count == 0 || head.count > kMostChunkEvents) {
    return "it has " + std::to_string(head.count) + " events";
  }
  return {};
}

// Empty: the header is right.
EventReading read_header(std::span<const std::byte> bytes) {
  EventReading reading;
  const auto header = row_at<Header>(bytes, 0);
  if (header.magic != kMagic) {
    reading.fault = ReadFault::kDamaged;
    reading.message = "it does not begin as a file of events does";
  } else if (header.version > kEventFileVersion) {
    reading.fault = ReadFault::kNewer;
    reading.message = "its version is " + std::to_string(header.version) +
                      ", this program reads up to " + std::to_string(kEventFileVersion);
  } else if (header.version == 0 || crc32(bytes_but_crc(header)) != header.crc) {
    reading.fault = ReadFault::kDamaged;
    reading.message = "the checksum of its header is another";
  } else {
    reading.view.facts = {.start_unix_ns = header.start_unix_ns,
                          .threads = header.threads,
                          .tick_source = header.tick_source};
  }
  return reading;
}

}  // namespace

EventWriter::EventWriter(const EventFileFacts& facts, Write write) : write_(std::move(write)) {
  Header header{.threads = facts.threads,
                .start_unix_ns = facts.start_unix_ns,
                .tick_source = facts.tick_source};
  header.crc = crc32(bytes_but_crc(header));
  write_(std::as_bytes(std::span(&header, 1)));
}

void EventWriter::add(std::span<const Event> events, std::uint64_t dropped) {
  if (events.empty()) return;
  chunk_.assign(chunk_bytes(events.size()), std::byte{0});
  ChunkHead head{.count = static_cast<std::uint32_t>(events.size()), .dropped = dropped};
  head.crc = crc32(bytes_but_crc(head));
  std::memcpy(chunk_.data(), &head, sizeof(head));
  std::byte* to = chunk_.data() + sizeof(head);
  to = put_column<std::int64_t>(to, events, [](const Event& e) { return e.begin_ns; });
  to = put_column<std::uint64_t>(to, events, [](const Event& e) { return e.value; });
  to = put_column<std::uint32_t>(to, events, [](const Event& e) { return e.id; });
  to = put_column<EventKind>(to, events, [](const Event& e) { return e.kind; });
  put_column<std::uint16_t>(to, events, [](const Event& e) { return e.thread; });
  ChunkFoot foot{.first_ns = events[0].begin_ns, .last_ns = events[0].end_ns()};
  for (const Event& event : events) {
    foot.first_ns = std::min(foot.first_ns, event.begin_ns);
    foot.last_ns = std::max(foot.last_ns, event.end_ns());
  }
  foot.count = head.count;
  std::byte* end = chunk_.data() + chunk_.size() - sizeof(foot);
  std::memcpy(end, &foot, sizeof(foot));
  foot.crc = crc32(std::span(chunk_).first(chunk_.size() - sizeof(foot.crc)));
  std::memcpy(end, &foot, sizeof(foot));
  write_(chunk_);
}

EventReading read_events(std::span<const std::byte> bytes, std::shared_ptr<const void> holder) {
  EventReading reading;
  if (bytes.size() < sizeof(Header)) {
    reading.view.torn_bytes = bytes.size();
    return reading;
  }
  reading = read_header(bytes);
  if (reading.fault != ReadFault::kNone) return reading;
  reading.view.holder = std::move(holder);
  std::size_t offset = sizeof(Header);
  while (bytes.size() - offset >= sizeof(ChunkHead)) {
    const auto head = row_at<ChunkHead>(bytes, offset);
    std::string fault = head_fault(head);
    if (!fault.empty()) return damaged(std::move(reading), offset, fault);
    if (chunk_bytes(head.count) > bytes.size() - offset) break;
    EventChunk chunk;
    fault = read_chunk(bytes, offset, chunk);
    if (!fault.empty()) return damaged(std::move(reading), offset, fault);
    std::uint32_t& threads = reading.view.facts.threads;
    threads = std::max(threads, 1U + std::ranges::max(chunk.thread));
    reading.view.events += chunk.size();
    reading.view.dropped = head.dropped;
    reading.view.chunks.push_back(chunk);
    offset += chunk_bytes(head.count);
  }
  reading.view.torn_bytes = bytes.size() - offset;
  return reading;
}

}  // namespace trainscope::profiler
