// Innermost spans of each thread, cut at the ends of the steps; idle ones beside the driver's.
#include "profiler/analysis/thread_times.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/core/error.h"
#include "profiler/analysis/step_times.h"
#include "profiler/analysis/timeline.h"

namespace trainscope::profiler {
namespace {

struct Piece {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  ThreadUse use = ThreadUse::kUnnamed;
};

// What a span is whose time nothing inside of it has; none: a span that says nothing of this.
std::optional<ThreadUse> use_of(EventKind kind) {
  switch (kind) {
    case EventKind::kCall:
    case EventKind::kWork:
      return ThreadUse::kWork;
    case EventKind::kStart:
      return ThreadUse::kStart;
    case EventKind::kJoin:
    case EventKind::kSection:
    case EventKind::kRankWait:
      return ThreadUse::kJoin;
    case EventKind::kIdle:
      return ThreadUse::kIdle;
    case EventKind::kLibrary:
      return ThreadUse::kLibrary;
    case EventKind::kBind:
    case EventKind::kInitial:
    case EventKind::kRead:
    case EventKind::kInputs:
    case EventKind::kResults:
      return ThreadUse::kCopy;
    case EventKind::kBatchWait:
      return ThreadUse::kData;
    case EventKind::kStepPart:
      return ThreadUse::kDispatch;
    default:
      return std::nullopt;
  }
}

// Parts of a step hold sections, these hold calls, and calls hold regions; inputs and results hold
// copies.
int depth_of_use(EventKind kind) {
  switch (kind) {
    case EventKind::kStepPart:
    case EventKind::kInputs:
    case EventKind::kResults:
      return 0;
    case EventKind::kSection:
      return 1;
    case EventKind::kCall:
      return 2;
    default:
      return 3;
  }
}

std::vector<std::vector<Event>> spans_by_thread(const EventView& events) {
  std::vector<std::vector<Event>> spans(std::max<std::uint32_t>(1, events.facts.threads));
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const bool is_known = chunk.thread[i] < spans.size() && use_of(chunk.kind[i]);
      if (is_known) spans[chunk.thread[i]].push_back(chunk.event(i));
    }
  }
  for (std::vector<Event>& each : spans) {
    std::ranges::sort(each, [](const Event& a, const Event& b) {
      if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
      if (a.value != b.value) return a.value > b.value;
      return depth_of_use(a.kind) < depth_of_use(b.kind);
    });
  }
  return spans;
}

// Side by side, in their order: of each moment the innermost span.
std::vector<Piece> innermost(const std::vector<Event>& spans) {
  std::vector<Piece> pieces;
  std::vector<Event> open;
  std::int64_t from = 0;
  const auto cut = [&](std::int64_t ns) {
    if (!open.empty() && ns > from) {
      pieces.push_back({.begin_ns = from, .end_ns = ns, .use = *use_of(open.back().kind)});
    }
    from = std::max(from, ns);
  };
  const auto close_until = [&](std::int64_t ns) {
    while (!open.empty() && open.back().end_ns() <= ns) {
      cut(open.back().end_ns());
      open.pop_back();
    }
  };
  for (const Event& span : spans) {
    close_until(span.begin_ns);
    cut(span.begin_ns);
    from = span.begin_ns;
    open.push_back(span);
  }
  while (!open.empty()) close_until(open.back().end_ns());
  return pieces;
}

// Calls f with each piece's part of each step. Both are in order.
template <class F>
void each_within(const std::vector<Piece>& pieces, const std::vector<StepTime>& steps, F f) {
  std::size_t first = 0;
  for (const StepTime& step : steps) {
    while (first < pieces.size() && pieces[first].end_ns <= step.begin_ns) ++first;
    for (std::size_t i = first; i < pieces.size() && pieces[i].begin_ns < step.end_ns; ++i) {
      f(Piece{.begin_ns = std::max(pieces[i].begin_ns, step.begin_ns),
              .end_ns = std::min(pieces[i].end_ns, step.end_ns),
              .use = pieces[i].use});
    }
  }
}

std::string cause_of(const PlanView& plan, const TimelinePiece& piece) {
  if (piece.call == kNoRow) {
    return "(" + std::string(name_of(own_time(piece.kind).value_or(OtherTime::kUnrecorded))) + ")";
  }
  const PlanCall& call = plan.calls[piece.call];
  const std::string_view op = plan.op_of(call);
  return std::string(op.empty() ? name_of(call.kind) : op);
}

class IdleCauses {
 public:
  IdleCauses(const PlanView& plan, const std::vector<TimelinePiece>& driver)
      : plan_(plan), driver_(driver) {}

  void add(const Piece& idle) {
    auto at = std::ranges::upper_bound(driver_, idle.begin_ns, {}, &TimelinePiece::begin_ns);
    if (at != driver_.begin()) --at;
    for (; at != driver_.end() && at->begin_ns < idle.end_ns; ++at) {
      const std::int64_t ns =
          std::min(at->end_ns, idle.end_ns) - std::max(at->begin_ns, idle.begin_ns);
      if (ns > 0) causes_[cause_of(plan_, *at)] += ns;
    }
  }

  std::vector<IdleCause> sorted() const {
    std::vector<IdleCause> rows;
    for (const auto& [name, ns] : causes_) rows.push_back({.name = name, .ns = ns});
    std::ranges::stable_sort(rows, std::ranges::greater{}, &IdleCause::ns);
    return rows;
  }

 private:
  const PlanView& plan_;
  const std::vector<TimelinePiece>& driver_;
  std::map<std::string, std::int64_t> causes_;
};

}  // namespace

std::string_view name_of(ThreadUse use) {
  static constexpr std::array<std::string_view, kThreadUses> kNames = {
      "work", "start", "join", "idle", "library", "copy", "data", "dispatch", "unnamed"};
  return kNames[static_cast<std::size_t>(use)];
}

double ThreadTimes::balance() const {
  std::int64_t most = 0;
  std::int64_t all = 0;
  for (const ThreadTime& each : threads) {
    most = std::max(most, each.of(ThreadUse::kWork));
    all += each.of(ThreadUse::kWork);
  }
  if (most == 0) return 1.0;
  return static_cast<double>(all) /
         (static_cast<double>(most) * static_cast<double>(threads.size()));
}

ThreadTimes thread_times(const EventView& events, const PlanView& plan) {
  const StepTimes steps = step_times(events, plan);
  const std::vector<TimelinePiece> driver = timeline(events, plan);
  const std::vector<std::vector<Event>> spans = spans_by_thread(events);
  ThreadTimes times{.threads = std::vector<ThreadTime>(spans.size()),
                    .total_ns = steps.total_ns,
                    .steps = static_cast<std::int64_t>(steps.steps.size())};
  IdleCauses causes(plan, driver);
  for (std::size_t thread = 0; thread < spans.size(); ++thread) {
    ThreadTime& time = times.threads[thread];
    std::int64_t named = 0;
    each_within(innermost(spans[thread]), steps.steps, [&](const Piece& piece) {
      const std::int64_t ns = piece.end_ns - piece.begin_ns;
      time.ns[static_cast<std::size_t>(piece.use)] += ns;
      named += ns;
      if (piece.use == ThreadUse::kIdle) causes.add(piece);
    });
    time.ns[static_cast<std::size_t>(ThreadUse::kUnnamed)] = steps.total_ns - named;
  }
  times.idle = causes.sorted();
  return times;
}

}  // namespace trainscope::profiler
