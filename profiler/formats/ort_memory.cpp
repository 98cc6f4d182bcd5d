// The convention of ONNX Runtime's memory profiler: trace events in which a row is a place in
// memory. pid is a class of buffers, tid a time of the plan, ts an offset in bytes, dur a size.
#include <array>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kClasses = static_cast<std::size_t>(BufferClass::kHeld) + 1;
constexpr std::size_t kMostRows = 2'000'000;  // a buffer has a row for each of its times

// Of the tracing viewer's reserved colours, one a class.
constexpr std::array<std::string_view, kClasses> kColours = {"thread_state_running",
                                                             "thread_state_iowait",
                                                             "generic_work",
                                                             "good",
                                                             "bad",
                                                             "thread_state_runnable",
                                                             "terrible",
                                                             "grey",
                                                             "startup"};

struct Span {
  std::uint32_t begin;
  std::uint32_t end;
};

class Rows {
 public:
  Rows(const PlanView& plan, const WriteText& write) : plan_(plan), write_(write) {}

  void run() {
    write_("[");
    for (std::size_t i = 0; i < kClasses; ++i) {
      row("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + std::to_string(i) +
          ", \"args\": {\"name\": \"" + std::string(name_of(static_cast<BufferClass>(i))) + "\"}}");
    }
    const std::vector<std::int64_t> live = live_bytes(plan_);
    for (std::size_t time = 0; time < live.size(); ++time) summary(time, live[time]);
    for (const PlanBuffer& buffer : plan_.buffers) {
      if (buffer.space == PlanSpaceKind::kDevice && buffer.bytes > 0) add(buffer);
    }
    write_("\n]\n");
  }

 private:
  void row(const std::string& text) {
    write_(is_first_ ? "\n" + text : ",\n" + text);
    is_first_ = false;
  }

  // ts below zero: beside the places.
  void summary(std::size_t time, std::int64_t used) {
    const std::int64_t total = plan_.arena().bytes;
    const std::string size = std::to_string(total / 8 + 1);
    row("{\"ph\": \"X\", \"name\": \"Summary\", \"cname\": \"black\", \"pid\": 0, \"tid\": " +
        std::to_string(time) + ", \"ts\": -" + size + ", \"dur\": " + size +
        ", \"args\": {\"total_bytes\": " + std::to_string(total) + ", \"used_bytes\": " +
        std::to_string(used) + ", \"free_bytes\": " + std::to_string(total - used) + "}}");
  }

  // A row for each time of the buffer; in plans of very many only its first and last.
  std::vector<Span> times_of(const PlanBuffer& buffer) const {
    const std::uint32_t end = std::min(buffer.end, plan_.facts().times);
    if (buffer.begin >= end) return {};
    const std::size_t all = std::size_t{plan_.facts().times} * plan_.buffers.size();
    if (all <= kMostRows) return {{buffer.begin, end}};
    if (end - buffer.begin == 1) return {{buffer.begin, end}};
    return {{buffer.begin, buffer.begin + 1}, {end - 1, end}};
  }

  void add(const PlanBuffer& buffer) {
    const auto holds = static_cast<std::size_t>(buffer.holds);
    const std::string tail = ", \"ts\": " + std::to_string(buffer.offset) +
                             ", \"dur\": " + std::to_string(buffer.bytes) +
                             ", \"args\": {\"bytes\": " + std::to_string(buffer.bytes) +
                             ", \"offset\": " + std::to_string(buffer.offset) +
                             ", \"lifetime\": [" + std::to_string(buffer.begin) + ", " +
                             std::to_string(buffer.end) +
                             "], \"producer\": " + Json(plan_.text(buffer.producer)).dump() + "}}";
    const std::string head = "{\"ph\": \"X\", \"name\": " + Json(plan_.text(buffer.label)).dump() +
                             ", \"cname\": \"" + std::string(kColours[holds]) +
                             "\", \"pid\": " + std::to_string(holds) + ", \"tid\": ";
    for (const Span& span : times_of(buffer)) {
      for (std::uint32_t time = span.begin; time < span.end; ++time) {
        row(head + std::to_string(time) + tail);
      }
    }
  }

  const PlanView& plan_;
  const WriteText& write_;
  bool is_first_ = true;
};

void write_ort_memory(const FormatInput& input, const WriteText& write) {
  Rows(input.plan, write).run();
}

}  // namespace

ProfileFormat ort_memory_format() {
  return {.name = "ort-memory", .needs_events = false, .write = write_ort_memory};
}

}  // namespace trainscope::profiler
