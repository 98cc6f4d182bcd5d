// Activity buffers made by hand: what is decoded of them, by us and, where it is, by NVIDIA's
// library; and which call each piece of work is tied to.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "profiler/cupti/activity_decoder.h"
#include "profiler/cupti/activity_join.h"
#include "profiler/cupti/device_events.h"

namespace trainscope::profiler::test {
namespace {

constexpr std::uint32_t kPushed = 3;  // an external kind that programs may use

class Buffer {
 public:
  template <typename Record>
  Buffer& add(const Record& record) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(Record));
    return *this;
  }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// The kinds, in their order.
class Kinds final : public ActivitySink {
 public:
  void kernel(const KernelRecord& record) override { text += "kernel " + name(record) + ", "; }
  void copy(const CopyRecord& record) override { text += "copy " + number(record.bytes); }
  void set(const SetRecord& record) override { text += "set " + number(record.bytes); }
  void graph(const GraphRecord& record) override { text += "graph " + number(record.graph); }
  void api_call(const ApiRecord& record) override { text += "api " + number(record.callback); }
  void external_correlation(const ExternalCorrelationRecord& record) override {
    text += "external " + number(record.external);
  }
  void synchronization(const SynchronizationRecord& record) override {
    text += "sync " + number(record.type);
  }
  void overhead(const OverheadRecord& record) override {
    text += "overhead " + number(record.overhead);
  }
  void memory(const MemoryRecord& record) override { text += "memory " + number(record.bytes); }
  std::string text;

 private:
  static std::string name(const KernelRecord& record) { return record.name; }
  static std::string number(std::uint64_t value) { return std::to_string(value) + ", "; }
};

Buffer all_kinds() {
  Buffer buffer;
  buffer.add(ExternalCorrelationRecord{.external_kind = kPushed, .external = 7, .correlation = 1})
      .add(ApiRecord{.callback = 211, .correlation = 1})
      .add(KernelRecord{.begin = 10, .end = 20, .correlation = 1, .name = "gemm"})
      .add(CopyRecord{.copy_kind = 1, .bytes = 4096, .begin = 1, .end = 5})
      .add(SetRecord{.bytes = 64, .begin = 2, .end = 3})
      .add(SynchronizationRecord{.type = 4})
      .add(OverheadRecord{.overhead = 2, .begin = 5, .end = 9})
      .add(GraphRecord{.begin = 1, .end = 9, .graph = 12})
      .add(ApiRecord{.kind = ActivityKind::kDriverCall, .callback = 307})
      .add(MemoryRecord{.operation = 1, .bytes = 512});
  return buffer;
}

constexpr std::string_view kAllKinds =
    "external 7, api 211, kernel gemm, copy 4096, set 64, sync 4, overhead 2, graph 12, api 307, "
    "memory 512, ";

TEST_CASE("activity decoder: records of every kind, in their order") {
  Buffer buffer = all_kinds();
  Kinds kinds;
  const ActivityReading reading = decode_activities(buffer.bytes(), kinds);
  CHECK(reading.fault.empty());
  CHECK(reading.records == 10);
  CHECK(reading.read_bytes == buffer.bytes().size());
  CHECK(kinds.text == kAllKinds);
  CHECK(knows_activity_version(130'001));
  CHECK_FALSE(knows_activity_version(140'000));
  CHECK_FALSE(knows_activity_version(28));
}

TEST_CASE("activity decoder: a buffer cut at any byte gives its whole records, and says so") {
  Buffer buffer = all_kinds();
  std::size_t ends = 0;
  for (std::size_t size = 0; size <= buffer.bytes().size(); ++size) {
    Kinds kinds;
    const ActivityReading reading = decode_activities(buffer.bytes().first(size), kinds);
    CHECK(reading.read_bytes <= size);
    CHECK(kAllKinds.starts_with(kinds.text));
    CHECK(reading.fault.empty() == (reading.read_bytes == size));
    ends += reading.fault.empty() ? 1 : 0;
  }
  CHECK(ends == 11);  // before the first record and behind each
}

TEST_CASE("activity decoder: behind a kind that is not known nothing can be found") {
  Buffer buffer;
  buffer.add(SetRecord{.bytes = 1, .begin = 1, .end = 2})
      .add(ApiRecord{.kind = static_cast<ActivityKind>(999)})
      .add(SetRecord{.bytes = 2, .begin = 1, .end = 2});
  Kinds kinds;
  const ActivityReading reading = decode_activities(buffer.bytes(), kinds);
  CHECK(kinds.text == "set 1, ");
  CHECK(reading.fault == "the record at byte 88 has kind 999, which is not known");
}

// The library's own decoder finds the same records at the same places.
TEST_CASE("activity decoder: NVIDIA's library agrees, where it is") {
  void* library = nullptr;
  for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib/libcupti.so.13",
                           "/usr/local/cuda/lib64/libcupti.so.13"}) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    MESSAGE("libcupti.so.13 is not here");
    return;
  }
  using Next = int (*)(std::uint8_t*, std::size_t, std::byte**);
  const auto next = reinterpret_cast<Next>(::dlsym(library, "cuptiActivityGetNextRecord"));
  REQUIRE((next != nullptr));
  Buffer buffer = all_kinds();
  const std::span<std::byte> bytes = buffer.bytes();
  std::byte* record = nullptr;
  std::size_t offset = 0;
  std::size_t records = 0;
  while (next(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), &record) == 0) {
    REQUIRE(records < 10);
    CHECK(static_cast<std::size_t>(record - bytes.data()) == offset);
    ActivityKind kind{};
    std::memcpy(&kind, record, sizeof(kind));
    offset += record_bytes(kind);
    ++records;
  }
  CHECK(records == 10);
  CHECK(offset == bytes.size());
}

std::string calls_of(const std::vector<DeviceActivity>& work) {
  std::string text;
  for (const DeviceActivity& one : work) {
    text += (one.call == kNoCall ? "-" : std::to_string(one.call)) + "@" +
            std::to_string(one.begin_ns) + " ";
  }
  return text;
}

void read(ActivityJoin& join, Buffer& buffer) {
  CHECK(decode_activities(buffer.bytes(), join).fault.empty());
}

TEST_CASE("activity join: external correlations tie work, also from a later buffer") {
  ActivityJoin join(kPushed, 1000);
  Buffer first;
  first.add(KernelRecord{.begin = 50, .end = 60, .correlation = 2, .name = "b"})
      .add(ExternalCorrelationRecord{.external_kind = kPushed, .external = 5, .correlation = 1})
      .add(ExternalCorrelationRecord{.external_kind = 1, .external = 99, .correlation = 3})
      .add(KernelRecord{.begin = 10, .end = 20, .correlation = 1, .name = "a"})
      .add(CopyRecord{.bytes = 8, .begin = 21, .end = 22, .correlation = 1})
      .add(SetRecord{.bytes = 8, .begin = 70, .end = 71, .correlation = 3});
  Buffer second;
  second.add(ExternalCorrelationRecord{.external_kind = kPushed, .external = 6, .correlation = 2});
  read(join, first);
  read(join, second);
  CHECK(calls_of(join.take()) == "5@1010 5@1021 6@1050 -@1070 ");
  CHECK(join.losses().untied == 1);
  Buffer late;  // was still running when the first window was flushed
  late.add(KernelRecord{.begin = 90, .end = 95, .correlation = 2, .name = "b"});
  read(join, late);
  CHECK(calls_of(join.take()) == "6@1090 ");
  CHECK(join.take().empty());
}

TEST_CASE("activity join: nodes of a graph and their clones are tied by their ids") {
  ActivityJoin join(kPushed, 0);
  join.note_graph_node(100, 7);
  join.note_graph_node(101, 8);
  join.note_graph_clone(100, 200);
  join.note_graph_clone(101, 201);
  join.note_graph_clone(555, 556);  // of a graph that nobody noted
  Buffer buffer;
  // All have the launch's correlation, which is tied to another call.
  buffer.add(ExternalCorrelationRecord{.external_kind = kPushed, .external = 1, .correlation = 9})
      .add(KernelRecord{.begin = 1, .end = 2, .correlation = 9, .name = "a", .graph_node = 200})
      .add(CopyRecord{.bytes = 8, .begin = 3, .end = 4, .correlation = 9, .graph_node = 201})
      .add(SetRecord{.bytes = 8, .begin = 5, .end = 6, .correlation = 9, .graph_node = 556})
      .add(GraphRecord{.correlation = 9, .begin = 1, .end = 6});
  read(join, buffer);
  CHECK(calls_of(join.take()) == "7@1 1@1 8@3 -@5 ");
  CHECK(join.losses().untied == 1);
}

TEST_CASE(
    "activity join: a clone that the driver makes beside all calls is its original's, in any "
    "order") {
  for (const bool is_created_first : {true, false}) {
    ActivityJoin join(kPushed, 0);
    join.note_graph_node(100, 7);
    if (is_created_first) join.note_graph_node(200, kOutsideCalls);
    join.note_graph_clone(100, 200);
    if (!is_created_first) join.note_graph_node(200, kOutsideCalls);
    join.note_graph_node(300, kOutsideCalls);  // of another program's graph
    Buffer buffer;
    buffer.add(KernelRecord{.begin = 1, .end = 2, .name = "a", .graph_node = 200})
        .add(KernelRecord{.begin = 3, .end = 4, .name = "b", .graph_node = 300})
        .add(KernelRecord{.begin = 5, .end = 6, .name = "c", .graph_node = 400});
    read(join, buffer);
    const std::vector<DeviceActivity> work = join.take();
    REQUIRE(work.size() == 3);
    CHECK(work[0].call == 7);
    CHECK(work[1].call == kOutsideCalls);
    CHECK(work[2].call == kNoCall);
    CHECK(join.tied() == 1);
    CHECK(join.outside() == 1);
    CHECK(join.losses().untied == 1);
    DeviceEvents events(1);
    events.add(work);
    CHECK(events.take(true).size() == 2);  // the call and its kernel
  }
}

TEST_CASE(
    "activity join: where all calls are in graphs what is launched by itself is outside of them") {
  Buffer buffer;
  buffer.add(CopyRecord{.bytes = 8, .begin = 1, .end = 2, .correlation = 5})
      .add(ExternalCorrelationRecord{
          .external_kind = kPushed, .external = kOutsideCalls, .correlation = 6})
      .add(CopyRecord{.bytes = 8, .begin = 3, .end = 4, .correlation = 6});
  for (const bool tied : {true, false}) {
    ActivityJoin join(kPushed, 0);
    CHECK_FALSE(join.has_correlations());
    join.set_launches_tied(tied);
    read(join, buffer);
    CHECK(join.take().size() == 2);
    CHECK(join.losses().untied == (tied ? 1 : 0));
    CHECK(join.outside() == (tied ? 1 : 2));
    CHECK(join.has_correlations());
  }
}

TEST_CASE("activity join: times follow the offset that was set last") {
  ActivityJoin join(kPushed, 100);
  Buffer buffer;
  buffer.add(SetRecord{.bytes = 1, .begin = 10, .end = 20, .graph_node = 1});
  read(join, buffer);
  join.set_offset(-5);
  read(join, buffer);
  CHECK(calls_of(join.take()) == "-@5 -@110 ");
}

TEST_CASE("activity join: what was dropped, has no times or is overhead is counted") {
  ActivityJoin join(kPushed, 0);
  Buffer buffer;
  buffer.add(KernelRecord{.correlation = 1, .name = "a"})
      .add(KernelRecord{.begin = 9, .end = 8, .correlation = 1, .name = "a"})
      .add(OverheadRecord{.begin = 100, .end = 350});
  read(join, buffer);
  join.note_dropped(3);
  join.note_dropped(4);
  join.note_unread(88);
  join.note_unread(12);
  CHECK(join.take().empty());
  CHECK(join.losses().untimed == 2);
  CHECK(join.losses().dropped == 7);
  CHECK(join.losses().unread_bytes == 100);
  CHECK(join.overhead_ns() == 250);
}

TEST_CASE("activity join: what the host did is added up, by the kinds of its calls") {
  ActivityJoin join(kPushed, 1000);
  Buffer buffer;
  buffer.add(ApiRecord{.begin = 10, .end = 15, .correlation = 1})
      .add(ApiRecord{.kind = ActivityKind::kDriverCall, .begin = 11, .end = 14, .correlation = 1})
      .add(ApiRecord{.begin = 20, .end = 40, .correlation = 2})
      .add(ApiRecord{.begin = 50, .end = 0, .correlation = 3})  // there was no memory for its end
      .add(SynchronizationRecord{.type = 1, .begin = 100, .end = 130})
      .add(SynchronizationRecord{.type = kStreamWaitsForEvent, .begin = 140, .end = 190})
      .add(SynchronizationRecord{.type = 3, .begin = 200, .end = 207})
      .add(MemoryRecord{.operation = kAllocation, .bytes = 512})
      .add(MemoryRecord{.operation = 2, .bytes = 512});
  read(join, buffer);
  CHECK(join.take().empty());
  CHECK(join.host().runtime_ns == 25);
  CHECK(join.host().driver_ns == 3);
  CHECK(join.host().wait_ns == 37);
  CHECK(join.host().allocations == 1);
}

// "call:thread begin-end", work in parentheses.
std::string text_of(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) {
    const std::string each = std::to_string(event.id) + ":" + std::to_string(event.thread) + " " +
                             std::to_string(event.begin_ns) + "-" + std::to_string(event.end_ns());
    text += event.kind == EventKind::kCall ? each + ", " : "(" + each + ") ";
  }
  return text;
}

DeviceActivity piece(std::uint32_t call, std::uint32_t stream, std::int64_t begin, std::int64_t end,
                     std::uint32_t replay = 0) {
  return {.call = call,
          .begin_ns = begin,
          .end_ns = end,
          .stream = stream,
          .correlation = replay,
          .graph_node = replay};
}

TEST_CASE("device events: a thread for each stream of each device, in the order of ends") {
  DeviceEvents events(4);
  events.add({piece(1, 7, 0, 10), piece(2, 20, 1, 3), piece(kNoCall, 7, 11, 12),
              piece(kOutsideCalls, 7, 11, 12), piece(3, 7, 12, 15)});
  CHECK(text_of(events.take(true)) ==
        "(1:4 0-10) 1:4 0-10, (3:4 12-15) 3:4 12-15, (2:5 1-3) 2:5 1-3, ");
  CHECK(events.take(true).empty());
}

TEST_CASE("device events: a run of a call is all that it launches, also of later buffers") {
  DeviceEvents events(1);
  events.add({piece(1, 7, 0, 2), piece(1, 7, 3, 5), piece(2, 7, 6, 8)});
  CHECK(text_of(events.take(false)) == "(1:1 0-2) (1:1 3-5) 1:1 0-5, ");
  events.add({piece(2, 7, 9, 10), piece(1, 7, 11, 12)});
  CHECK(text_of(events.take(false)) == "(2:1 6-8) (2:1 9-10) 2:1 6-10, ");
  CHECK(text_of(events.take(true)) == "(1:1 11-12) 1:1 11-12, ");
}

TEST_CASE("device events: in a replay a call is one run, and the next replay has another") {
  DeviceEvents events(1);
  events.add(
      {piece(1, 7, 0, 2, 50), piece(2, 7, 3, 4, 50), piece(1, 7, 5, 6, 50), piece(1, 7, 7, 8, 51)});
  // The second call runs within the first one's, beside it.
  CHECK(text_of(events.take(true)) ==
        "(1:1 0-2) (1:1 5-6) 1:1 0-6, (1:1 7-8) 1:1 7-8, (2:2 3-4) 2:2 3-4, ");
}

TEST_CASE("device events: work beside other work of its stream has a thread of its own") {
  DeviceEvents events(1);
  events.add({piece(1, 7, 0, 10), piece(2, 7, 5, 8), piece(3, 7, 9, 20), piece(4, 7, 10, 12)});
  CHECK(text_of(events.take(true)) ==
        "(1:1 0-10) 1:1 0-10, (4:1 10-12) 4:1 10-12, (2:2 5-8) 2:2 5-8, (3:2 9-20) 3:2 9-20, ");
  events.add({piece(5, 7, 15, 18)});
  CHECK(text_of(events.take(true)) == "(5:1 15-18) 5:1 15-18, ");
}

}  // namespace
}  // namespace trainscope::profiler::test
