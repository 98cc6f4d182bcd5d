// A small plan and the events of its steps, for tests.
#pragma once

#include <cstring>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler::test {

// Events as a file in memory.
class EventBytes {
 public:
  explicit EventBytes(const std::vector<Event>& events) {
    EventWriter writer({.start_unix_ns = 1'000'000'000'000'000'000, .threads = 2},
                       [this](std::span<const std::byte> bytes) { put(bytes); });
    // Several chunks, so that none is complete by itself.
    for (std::size_t i = 0; i < events.size(); i += 4) {
      writer.add(std::span(events).subspan(i, std::min<std::size_t>(4, events.size() - i)), 0);
    }
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), size_};
  }
  EventView view() const { return read_events(bytes()).view; }

 private:
  void put(std::span<const std::byte> more) {
    words_.resize((size_ + more.size() + 7) / 8);
    std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + size_, more.data(), more.size());
    size_ += more.size();
  }
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

struct PlannedCall {
  const char* name;
  const char* op;
  const char* source;
  PlanPhase phase;
  std::int64_t flops;
};

// A node for each call.
inline PlanRecord plan_of(const std::vector<PlannedCall>& calls) {
  PlanRecord plan;
  for (const PlannedCall& call : calls) {
    const auto id = static_cast<std::uint32_t>(plan.nodes.size());
    plan.names.push_back(plan.texts.id(call.source));
    plan.nodes.push_back({.name = plan.texts.id(call.name),
                          .op = plan.texts.id(call.op),
                          .pass = plan.texts.id("imported"),
                          .sources = {.begin = id, .count = 1},
                          .phase = call.phase});
    plan.calls.push_back({.phase = call.phase,
                          .node = id,
                          .kernel = plan.texts.id("gemm"),
                          .flops = call.flops,
                          .bytes_read = 100,
                          .bytes_written = 60});
  }
  return plan;
}

inline Event span_of(EventKind kind, std::uint32_t id, std::int64_t begin, std::int64_t end) {
  return {
      .begin_ns = begin, .value = static_cast<std::uint64_t>(end - begin), .id = id, .kind = kind};
}
inline Event on_thread(std::uint16_t thread, Event event) {
  event.thread = thread;
  return event;
}

inline PlanRecord small_plan() {
  return plan_of({{"mm", "MatMul", "/fc/MatMul", PlanPhase::kForward, 4000},
                  {"gelu.0", "Gelu", "/fc/act/Gelu", PlanPhase::kForward, 10},
                  {"gelu.1", "Gelu", "/fc/act/Gelu", PlanPhase::kForward, 10},
                  {"mm_grad", "MatMul", "/fc/MatMul", PlanPhase::kBackward, 8000}});
}

// Two whole steps of 1000 and 800 ns, and one that failed. In each a wait for the batch, a copy, a
// call, a section of two batch tiles, and a call.
inline std::vector<Event> small_events() {
  using enum EventKind;
  return {
      span_of(kBatchWait, 0, 1010, 1060),
      span_of(kBind, 5, 1070, 1100),
      span_of(kStart, 0, 1120, 1125),
      span_of(kWork, 0, 1125, 1170),
      span_of(kJoin, 0, 1170, 1190),
      span_of(kCall, 0, 1110, 1200),
      span_of(kCall, 1, 1220, 1300),
      span_of(kSection, 0, 1210, 1350),
      span_of(kCall, 3, 1350, 1850),
      span_of(kStepPart, 0, 1065, 1900),
      span_of(kStep, 6, 1000, 2000),
      on_thread(1, span_of(kWork, 1, 1125, 1180)),
      on_thread(1, span_of(kCall, 2, 1215, 1345)),
      span_of(kBatchWait, 0, 2100, 2110),
      span_of(kBind, 5, 2110, 2120),
      span_of(kCall, 0, 2120, 2320),
      span_of(kCall, 1, 2330, 2400),
      span_of(kSection, 0, 2325, 2420),
      span_of(kCall, 3, 2430, 2830),
      span_of(kStepPart, 0, 2110, 2890),
      span_of(kStep, 7, 2100, 2900),
      on_thread(1, span_of(kCall, 2, 2330, 2410)),
      span_of(kCheckpoint, 7, 2910, 2990),
      span_of(kCall, 0, 3000, 3100),  // of a step that did not end
      on_thread(1, span_of(kCall, 2, 3100, 3200)),
  };
}

// One step of 1000 ns of a rank: inputs around a copy, a call, results around a wait for other
// ranks, and those of the update.
inline std::vector<Event> events_of_a_rank() {
  using enum EventKind;
  return {
      span_of(kInputs, 0, 1000, 1020),  span_of(kBatchWait, 0, 1020, 1030),
      span_of(kBind, 5, 1045, 1065),    span_of(kInputs, 0, 1040, 1070),
      span_of(kCall, 3, 1080, 1500),    span_of(kRankWait, 0, 1540, 1840),
      span_of(kResults, 0, 1520, 1850), span_of(kStepPart, 0, 1035, 1860),
      span_of(kResults, 1, 1900, 1990), span_of(kStep, 1, 1000, 2000),
  };
}

}  // namespace trainscope::profiler::test
