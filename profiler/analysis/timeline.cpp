// A stack of open spans over the spans sorted by their begin.
#include "profiler/analysis/timeline.h"

#include <algorithm>

#include "engine/core/error.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {
namespace {

// How far outside a span is among those that begin and end together; none: of no interest here.
int depth_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return 0;
    case EventKind::kStepPart:
      return 1;
    case EventKind::kSection:
      return 2;
    case EventKind::kBatchWait:
    case EventKind::kBind:
    case EventKind::kInitial:
    case EventKind::kRead:
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
  explicit Cutter(const PlanView& plan) : plan_(plan) {}

  void add(const Event& span) {
    close_until(span.begin_ns);
    require(open_.empty() || span.end_ns() <= open_.back().end_ns(), ErrorCode::kBadInput,
            "the profile's spans of thread 0 do not nest: a {} begins at {} ns", name_of(span.kind),
            span.begin_ns);
    require(span.kind != EventKind::kCall || span.id < plan_.calls.size(), ErrorCode::kBadInput,
            "the profile names call {}, but the plan has {} calls: they are not of one session",
            span.id, plan_.calls.size());
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
  // Ends the piece of the innermost span.
  void cut(std::int64_t ns) {
    if (!open_.empty() && open_.front().kind == EventKind::kStep && ns > from_) {
      const Event& inner = open_.back();
      pieces_.push_back({.step = open_.front().id,
                         .begin_ns = from_,
                         .end_ns = ns,
                         .call = inner.kind == EventKind::kCall ? inner.id : kNoRow,
                         .kind = inner.kind});
    }
    from_ = ns;
  }

  const PlanView& plan_;
  std::vector<Event> open_;
  std::vector<TimelinePiece> pieces_;
  std::int64_t from_ = 0;
};

}  // namespace

std::vector<TimelinePiece> timeline(const EventView& events, const PlanView& plan) {
  Cutter cutter(plan);
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
