// A stack of open spans over the spans sorted by their begin; over it what the device was at.
#include "profiler/analysis/timeline.h"

#include <algorithm>

#include "engine/core/error.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/device_time.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {
namespace {

// How far outside a span is among those that begin and end together; none: of no interest here.
int depth_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return 0;
    case EventKind::kStepPart:
    case EventKind::kInputs:
    case EventKind::kResults:
      return 1;
    case EventKind::kSection:
      return 2;
    case EventKind::kBatchWait:
    case EventKind::kBind:
    case EventKind::kInitial:
    case EventKind::kRead:
    case EventKind::kRankWait:
    case EventKind::kCall:
      return 3;
    default:
      return -1;
  }
}

std::vector<Event> spans_of_driver(const EventView& events) {
  std::vector<Event> spans;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.thread[i] == 0 && depth_of(chunk.kind[i]) >= 0) spans.push_back(chunk.event(i));
    }
  }
  std::ranges::sort(spans, [](const Event& a, const Event& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.value != b.value) return a.value > b.value;
    return depth_of(a.kind) < depth_of(b.kind);
  });
  return spans;
}

class Cutter {
 public:
  Cutter(const PlanView& plan, const DeviceTime& device) : plan_(plan), device_(device) {}

  void add(const Event& span) {
    close_until(span.begin_ns);
    require(open_.empty() || span.end_ns() <= open_.back().end_ns(), ErrorCode::kBadInput,
            "the profile's spans of thread 0 do not nest: a {} begins at {} ns", name_of(span.kind),
            span.begin_ns);
    if (span.kind == EventKind::kCall) check_call(span.id);
    cut(span.begin_ns);
    open_.push_back(span);
  }

  std::vector<TimelinePiece> take() {
    while (!open_.empty()) close();
    return std::move(pieces_);
  }

 private:
  void close_until(std::int64_t ns) {
    while (!open_.empty() && open_.back().end_ns() <= ns) close();
  }
  void close() {
    cut(open_.back().end_ns());
    open_.pop_back();
  }
  void check_call(std::uint32_t call) const {
    require(call < plan_.calls.size(), ErrorCode::kBadInput,
            "the profile names call {}, but the plan has {} calls: they are not of one session",
            call, plan_.calls.size());
  }
  // Ends the piece of the innermost span, but for what the device has of it.
  void cut(std::int64_t ns) {
    if (!open_.empty() && open_.front().kind == EventKind::kStep && ns > from_) {
      const Event& inner = open_.back();
      const std::uint32_t own = inner.kind == EventKind::kCall ? inner.id : kNoRow;
      std::int64_t behind = from_;
      device_.each_piece(from_, ns,
                         [&](std::uint32_t call, std::int64_t begin_ns, std::int64_t end_ns) {
                           check_call(call);
                           add_piece(behind, begin_ns, own, inner.kind);
                           add_piece(begin_ns, end_ns, call, EventKind::kCall);
                           behind = end_ns;
                         });
      add_piece(behind, ns, own, inner.kind);
    }
    from_ = ns;
  }
  void add_piece(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t call, EventKind kind) {
    if (begin_ns == end_ns) return;
    pieces_.push_back({.step = open_.front().id,
                       .begin_ns = begin_ns,
                       .end_ns = end_ns,
                       .call = call,
                       .kind = kind});
  }

  const PlanView& plan_;
  const DeviceTime& device_;
  std::vector<Event> open_;
  std::vector<TimelinePiece> pieces_;
  std::int64_t from_ = 0;
};

}  // namespace

std::vector<TimelinePiece> timeline(const EventView& events, const PlanView& plan) {
  const DeviceTime device(events);
  Cutter cutter(plan, device);
  for (const Event& span : spans_of_driver(events)) cutter.add(span);
  return cutter.take();
}

std::vector<std::string> path_of(const PlanView& plan, const TimelinePiece& piece) {
  if (piece.call == kNoRow)
    return {"(" + std::string(name_of(own_time(piece.kind).value_or(OtherTime::kUnrecorded))) +
            ")"};
  const PlanCall& call = plan.calls[piece.call];
  const std::string_view node = onnx_node_of(plan, call);
  const std::string_view op = plan.op_of(call);
  return {std::string(name_of(call.phase)), std::string(layer_of(node)), std::string(node),
          std::string(op.empty() ? name_of(call.kind) : op), std::string(kernel_of(plan, call))};
}

}  // namespace trainscope::profiler
