// Traces with bytes changed at random: each is refused, or becomes a plan and events that hold.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "profiler/import/imported_profile.h"
#include "profiler/import/trace_reader.h"

namespace trainscope::profiler::test {
namespace {

std::string trace(const std::string& name) {
  const std::string path =
      std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/traces/" + name + ".json.gz";
  const ByteSource source = byte_source(SharedBytes(MappedFile::open(path)));
  std::string text;
  for (std::string_view piece = source(); !piece.empty(); piece = source()) text += piece;
  return text;
}

// The events as a file of events has them, read back.
std::uint64_t events_read(const ImportedProfile& profile) {
  std::vector<std::uint64_t> words;
  std::size_t size = 0;
  EventWriter writer(profile.facts, [&](std::span<const std::byte> bytes) {
    words.resize((size + bytes.size() + 7) / 8);
    std::memcpy(reinterpret_cast<std::byte*>(words.data()) + size, bytes.data(), bytes.size());
    size += bytes.size();
  });
  writer.add(profile.events, 0);
  const EventReading reading =
      read_events({reinterpret_cast<const std::byte*>(words.data()), size});
  CHECK_MESSAGE(reading.fault == ReadFault::kNone, reading.message);
  return reading.view.events;
}

// Whether it was taken; what was must hold.
bool holds(const std::string& text) {
  try {
    const ImportedProfile profile = import_profile(byte_source(SharedBytes::copy_of(text)));
    CHECK(find_fault(view_of(profile.plan)) == "");
    CHECK(events_read(profile) == profile.events.size());
    CHECK(profile.attributed_ns <= profile.op_ns);
    CHECK(profile.attributed_work_ns <= profile.work_ns);
    for (const Event& event : profile.events) {
      if (event.kind == EventKind::kCall) CHECK(event.id < profile.plan.calls.size());
      CHECK(event.thread < profile.facts.threads);
    }
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    return false;
  }
}

void change_bytes(const std::string& text, int times, std::mt19937& random) {
  constexpr std::string_view kBytes = "0123456789-.eE\"\\{}[],: \n\tXx\x80\xff";
  int taken = 0;
  for (int i = 0; i < times; ++i) {
    std::string changed = text;
    for (auto k = random() % 3 + 1; k > 0; --k) {
      changed[random() % changed.size()] = kBytes[random() % kBytes.size()];
    }
    if (random() % 4 == 0) changed.erase(random() % changed.size(), random() % 100 + 1);
    taken += holds(changed) ? 1 : 0;
  }
  MESSAGE(taken << " of " << times << " changed traces were taken");
}

TEST_CASE("import: a trace of ONNX Runtime with bytes changed is refused or holds") {
  std::mt19937 random(5);
  const std::string text = trace("ort-training-mlp");
  CHECK(holds(text));
  change_bytes(text, 300, random);
}

TEST_CASE("import: a trace of PyTorch with bytes changed is refused or holds") {
  std::mt19937 random(6);
  const std::string text = trace("pytorch-gpt");
  CHECK(holds(text));
  // Its first events alone, and the end of the whole: the whole would take long.
  const std::size_t cut = text.find("{\"ph\"", text.size() / 12);
  change_bytes(text.substr(0, cut) + "{\"ph\": \"M\"}]}", 60, random);
}

TEST_CASE("import: a trace of PyTorch on a GPU with bytes changed is refused or holds") {
  std::mt19937 random(7);
  const std::string text = trace("pytorch-gpu-graph");
  CHECK(holds(text));
  // Its second half, which has the kernels.
  const std::size_t cut = text.find("  {\n    \"ph\"", text.size() * 3 / 4);
  change_bytes("{\"traceEvents\": [" + text.substr(cut), 60, random);
}

TEST_CASE("import: numbers of any kind in times and ids are refused or hold") {
  const std::vector<std::string> numbers = {"0",
                                            "-1",
                                            "1e15",
                                            "3.1e15",
                                            "-3.1e15",
                                            "1e16",
                                            "1e-9",
                                            "null",
                                            "true",
                                            "\"7\"",
                                            "9223372036854775807",
                                            "[]",
                                            "1e999"};
  int taken = 0;
  for (const std::string& begin : numbers) {
    for (const std::string& length : numbers) {
      const std::string head = R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": )" +
                               begin + R"(, "dur": )" + length + R"(, "args": {"External id": )" +
                               length + R"(, "Sequence number": )" + begin + "}}";
      const std::string other =
          R"({"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 5, "dur": 2, "tid": )" +
          begin + "}";
      taken += holds("[" + head + "," + other + "]") ? 1 : 0;
    }
  }
  CHECK(taken >= 12);
}

}  // namespace
}  // namespace trainscope::profiler::test
