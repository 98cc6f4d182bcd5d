// events.cols: what is written is read, at any moment; what is damaged is said.
#include "profiler/store/event_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "profiler/store/crc32.h"

namespace trainscope::profiler {
namespace {

struct Bytes {
  std::vector<std::uint64_t> words;  // a multiple of eight, as a map's beginning is
  std::size_t size = 0;

  void put(std::span<const std::byte> more) {
    words.resize((size + more.size() + 7) / 8);
    std::memcpy(reinterpret_cast<std::byte*>(words.data()) + size, more.data(), more.size());
    size += more.size();
  }
  std::span<std::byte> all() { return {reinterpret_cast<std::byte*>(words.data()), size}; }
};

std::vector<Event> some_events(std::uint32_t count) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_value = i % 3 == 2;
    events.push_back({.begin_ns = 100 * static_cast<std::int64_t>(i) - 50,
                      .value = is_value ? std::bit_cast<std::uint64_t>(0.5 * i) : 40,
                      .id = i,
                      .kind = is_value ? EventKind::kLoss : EventKind::kCall,
                      .thread = static_cast<std::uint16_t>(i % 2)});
  }
  return events;
}

constexpr EventFileFacts kFacts = {
    .start_unix_ns = 1'700'000'000'000'000'123, .threads = 2, .tick_source = 1};

// Chunks of 3, 1 and 5 events.
Bytes small_file() {
  Bytes file;
  EventWriter writer(kFacts, [&](std::span<const std::byte> bytes) { file.put(bytes); });
  const std::vector<Event> events = some_events(9);
  writer.add(std::span(events).first(3), 0);
  writer.add(std::span(events).subspan(3, 1), 0);
  writer.add(std::span(events).subspan(4), 17);
  writer.add({}, 17);
  return file;
}

std::vector<Event> events_of(const EventView& view) {
  std::vector<Event> events;
  for (const EventChunk& chunk : view.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) events.push_back(chunk.event(i));
  }
  return events;
}

TEST_CASE("crc32: the check value of the standard, in one piece and in two") {
  constexpr std::string_view kText = "123456789";
  const auto bytes = std::as_bytes(std::span(kText));
  CHECK(crc32(bytes) == 0xCBF43926U);
  CHECK(crc32(bytes.subspan(4), crc32(bytes.first(4))) == 0xCBF43926U);
  CHECK(crc32({}) == 0);
}

TEST_CASE("event file: what was written is read, and times bound each chunk") {
  Bytes file = small_file();
  const EventReading reading = read_events(file.all());
  REQUIRE(reading.message.empty());
  CHECK(reading.view.facts.start_unix_ns == kFacts.start_unix_ns);
  CHECK(reading.view.facts.threads == 2);
  CHECK(reading.view.facts.tick_source == 1);
  CHECK(reading.view.events == 9);
  CHECK(reading.view.dropped == 17);
  CHECK(reading.view.torn_bytes == 0);
  CHECK(events_of(reading.view) == some_events(9));
  REQUIRE(reading.view.chunks.size() == 3);
  CHECK(reading.view.chunks[0].first_ns == -50);
  CHECK(reading.view.chunks[0].last_ns == 150);  // of a value its moment, of the span before 90
}

TEST_CASE("event file: threads that came after its header was written are counted") {
  Bytes file;
  EventWriter writer(kFacts, [&](std::span<const std::byte> bytes) { file.put(bytes); });
  std::vector<Event> events = some_events(3);
  events[1].thread = 6;
  writer.add(events, 0);
  writer.add(some_events(2), 0);
  CHECK(read_events(file.all().first(32)).view.facts.threads == 2);
  CHECK(read_events(file.all()).view.facts.threads == 7);
}

TEST_CASE("event file: 24 bytes an event, and 48 a chunk") {
  Bytes file;
  EventWriter writer(kFacts, [&](std::span<const std::byte> bytes) { file.put(bytes); });
  CHECK(file.size == 32);
  writer.add(some_events(1000), 0);
  CHECK(file.size == 32 + 48 + 24 * 1000);
}

TEST_CASE("event file: cut short at any byte, whole chunks are there and the rest is counted") {
  Bytes file = small_file();
  const std::size_t sizes[] = {32, 32 + 48 + 72, 32 + 96 + 96, 32 + 144 + 216};
  REQUIRE(file.size == sizes[3]);
  const std::size_t counts[] = {0, 3, 4, 9};
  for (std::size_t size = 0; size < file.size; ++size) {
    const EventReading reading = read_events(file.all().first(size));
    CHECK_MESSAGE(reading.message.empty(), size, reading.message);
    std::size_t whole = 0;
    while (sizes[whole + 1] <= size) ++whole;
    const std::size_t kept = size < 32 ? 0 : sizes[whole];
    CHECK_MESSAGE(reading.view.events == (size < 32 ? 0 : counts[whole]), size);
    CHECK_MESSAGE(reading.view.torn_bytes == size - kept, size);
  }
}

TEST_CASE("event file: a flipped bit anywhere is found") {
  const Bytes file = small_file();
  for (std::size_t bit = 0; bit < 8 * file.size; ++bit) {
    Bytes damaged = file;
    damaged.all()[bit / 8] ^= std::byte{1} << (bit % 8);
    const EventReading reading = read_events(damaged.all());
    CHECK_MESSAGE(!reading.message.empty(), bit);
    CHECK_MESSAGE(reading.message.find('\n') == std::string::npos, bit);
    CHECK_MESSAGE(reading.view.chunks.empty(), bit);
  }
}

TEST_CASE("event file: other files, and those of later programs, are said to be so") {
  Bytes file = small_file();
  file.all()[8] = std::byte{2};
  const EventReading later = read_events(file.all());
  CHECK(later.fault == ReadFault::kNewer);
  CHECK(later.message == "its version is 2, this program reads up to 1");
  Bytes text;
  text.put(std::as_bytes(std::span(std::string_view("{\"traceEvents\": [], \"more\": 12345678}"))));
  CHECK(read_events(text.all()).fault == ReadFault::kDamaged);
}

// A chunk's head with a right checksum.
void put_head(Bytes& file, std::uint32_t count) {
  struct Head {
    std::uint32_t magic = 0x4B4E4843;
    std::uint32_t count = 0;
    std::uint64_t dropped = 0;
    std::uint32_t reserved = 0;
    std::uint32_t crc = 0;
  } head{.count = count};
  const auto bytes = std::as_bytes(std::span(&head, 1));
  head.crc = crc32(bytes.first(20));
  file.put(bytes);
}

TEST_CASE("event file: sizes that no writer makes are refused before anything is read by them") {
  for (const std::uint32_t count :
       {0U, (1U << 20U) + 1, std::numeric_limits<std::uint32_t>::max()}) {
    Bytes file;
    const EventWriter writer(kFacts, [&](std::span<const std::byte> bytes) { file.put(bytes); });
    put_head(file, count);
    const EventReading reading = read_events(file.all());
    CHECK(reading.message ==
          "the chunk at byte 32 is damaged: it has " + std::to_string(count) + " events");
  }
}

TEST_CASE("event file: spans that end beyond any time are refused") {
  for (const std::uint64_t value : {std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t{1} << 63U, (std::uint64_t{1} << 63U) - 1}) {
    Bytes file;
    EventWriter writer(kFacts, [&](std::span<const std::byte> bytes) { file.put(bytes); });
    writer.add(std::vector<Event>{{.begin_ns = 5, .value = value, .kind = EventKind::kCall}}, 0);
    const EventReading reading = read_events(file.all());
    CHECK_MESSAGE(reading.fault == ReadFault::kDamaged, value);
  }
}

}  // namespace
}  // namespace trainscope::profiler
