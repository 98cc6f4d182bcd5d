// Spans come as they end, what is inside of others first: so a stack of those that have ended and
// belong to nobody yet gives each its own time.
#include "profiler/analysis/step_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "engine/core/error.h"
#include "profiler/analysis/device_time.h"

namespace trainscope::profiler {
namespace {

// Times of calls that are kept, one of each call in each step: 1 GiB of them. A file has a few
// bytes of a step without calls, which would have as many times as there are calls.
constexpr std::size_t kMostTimes = std::size_t{1} << 27;

constexpr std::size_t index_of(OtherTime other) { return static_cast<std::size_t>(other); }

class Division {
 public:
  // `most_steps` that the profile may have, so that times take no more room than they need.
  Division(const PlanView& plan, const DeviceTime& device, std::size_t most_steps, StepTimes& into)
      : plan_(plan), device_(device), most_steps_(most_steps), into_(into) {
    into_.calls.resize(plan.calls.size());
  }

  void add(const Event& event) {
    const bool is_call = event.kind == EventKind::kCall;
    const std::optional<OtherTime> other = own_time(event.kind);
    if (!is_call && !other) return;
    if (is_call) check_call(event);
    std::int64_t own = static_cast<std::int64_t>(event.value);
    const std::int64_t of_device = device_.within(event.begin_ns, event.end_ns());
    std::int64_t own_of_device = of_device;
    std::size_t first = ended_.size();
    while (first > 0 && ended_[first - 1].begin_ns >= event.begin_ns) {
      own -= ended_[--first].ns;
      own_of_device -= ended_[first].of_device_ns;
    }
    const bool overlaps = first > 0 && ended_[first - 1].end_ns > event.begin_ns;
    require(own >= 0 && !overlaps, ErrorCode::kBadInput,
            "the profile's spans of thread 0 do not nest: a {} begins at {} ns",
            name_of(event.kind), event.begin_ns);
    own -= own_of_device;
    if (event.kind == EventKind::kStep) return end_step(event, own, first);
    ended_.resize(first);
    ended_.push_back({.begin_ns = event.begin_ns,
                      .end_ns = event.end_ns(),
                      .ns = static_cast<std::int64_t>(event.value),
                      .of_device_ns = of_device});
    own_.push_back({.call = is_call ? event.id : kNoRow,
                    .other = other.value_or(OtherTime::kUnrecorded),
                    .begin_ns = event.begin_ns,
                    .ns = own});
  }

  // A call on another thread: a batch tile's, or a device's.
  void add_busy(const Event& event) {
    check_call(event);
    const auto after =
        std::ranges::upper_bound(into_.steps, event.begin_ns, {}, &StepTime::begin_ns);
    if (after == into_.steps.begin() || event.begin_ns > std::prev(after)->end_ns) return;
    CallTime& call = into_.calls[event.id];
    call.busy_ns += static_cast<std::int64_t>(event.value);
    ++call.runs;
  }

 private:
  struct Ended {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::int64_t ns;
    std::int64_t of_device_ns;
  };
  struct Own {
    std::uint32_t call;
    OtherTime other;
    std::int64_t begin_ns;
    std::int64_t ns;
  };

  void check_call(const Event& event) const {
    require(event.id < plan_.calls.size(), ErrorCode::kBadInput,
            "the profile names call {}, but the plan has {} calls: they are not of one session",
            event.id, plan_.calls.size());
  }

  void end_step(const Event& event, std::int64_t own, std::size_t first) {
    StepTime step{.step = event.id, .begin_ns = event.begin_ns, .end_ns = event.end_ns()};
    step.other_ns[index_of(OtherTime::kUnrecorded)] = own;
    const std::size_t index = into_.steps.size();
    require(index < kMostTimes / std::max<std::size_t>(1, into_.calls.size()), ErrorCode::kBadInput,
            "the profile has more than {} steps of {} calls, which are too many to look at", index,
            into_.calls.size());
    for (const Own& part : own_) {
      if (part.begin_ns < event.begin_ns) continue;  // of a step that never ended
      if (part.call == kNoRow) {
        step.other_ns[index_of(part.other)] += part.ns;
        continue;
      }
      add_time(part.call, index, part.ns);
      CallTime& call = into_.calls[part.call];
      call.busy_ns += part.ns;
      ++call.runs;
    }
    device_.each(step.begin_ns, step.end_ns, [&](std::uint32_t call, std::int64_t ns) {
      if (call < into_.calls.size()) add_time(call, index, ns);
    });
    into_.steps.push_back(step);
    into_.total_ns += step.ns();
    own_.clear();
    ended_.resize(first);
  }

  void add_time(std::uint32_t id, std::size_t step, std::int64_t ns) {
    CallTime& call = into_.calls[id];
    if (call.ns.size() == 0) call.ns.reserve(most_steps_);
    call.ns.resize(step + 1);
    call.ns.add(step, ns);
  }

  const PlanView& plan_;
  const DeviceTime& device_;
  std::size_t most_steps_;
  StepTimes& into_;
  std::vector<Ended> ended_;  // spans whose parent has not ended
  std::vector<Own> own_;      // of the step under way
};

template <class F>
void each_event(const EventView& events, F f) {
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) f(chunk, i);
  }
}

}  // namespace

std::optional<OtherTime> own_time(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return OtherTime::kUnrecorded;
    case EventKind::kStepPart:
      return OtherTime::kDispatch;
    case EventKind::kBatchWait:
      return OtherTime::kBatchWait;
    case EventKind::kBind:
    case EventKind::kInitial:
    case EventKind::kRead:
    case EventKind::kInputs:
    case EventKind::kResults:
      return OtherTime::kCopy;
    case EventKind::kSection:
    case EventKind::kRankWait:
      return OtherTime::kJoinWait;
    default:
      return std::nullopt;
  }
}

std::string_view name_of(OtherTime other) {
  switch (other) {
    case OtherTime::kCopy:
      return "copy";
    case OtherTime::kBatchWait:
      return "batch wait";
    case OtherTime::kJoinWait:
      return "join wait";
    case OtherTime::kDispatch:
      return "dispatch";
    case OtherTime::kUnrecorded:
      return "nothing recorded";
  }
  CHECK_INVARIANT(false);
}

namespace {

// Of each call that counts rows: those it computed of those that its first input has room for.
void add_counted_rows(const EventView& events, const PlanView& plan, StepTimes& times) {
  struct Counted {
    double rows = 0.0;
    double room = 0.0;
  };
  std::map<std::uint32_t, Counted> counted;
  each_event(events, [&](const EventChunk& chunk, std::size_t i) {
    if (chunk.kind[i] != EventKind::kCountedRows || chunk.id[i] >= plan.calls.size()) return;
    const RowRange inputs = plan.calls[chunk.id[i]].inputs;
    if (inputs.count == 0) return;
    const auto shape = rows_of(plan.dims, plan.operands[inputs.begin].shape);
    if (shape.empty()) return;
    Counted& of_call = counted[chunk.id[i]];
    of_call.rows += chunk.event(i).number();
    of_call.room += static_cast<double>(shape[0]);
  });
  for (const auto& [id, rows] : counted) {
    if (rows.room > 0.0) times.calls[id].rows = std::clamp(rows.rows / rows.room, 0.0, 1.0);
  }
}

}  // namespace

StepTimes step_times(const EventView& events, const PlanView& plan) {
  StepTimes times;
  std::size_t steps = 0;
  for (const EventChunk& chunk : events.chunks)
    steps += std::ranges::count(chunk.kind, EventKind::kStep);
  steps = std::min(steps, kMostTimes / std::max<std::size_t>(1, plan.calls.size()));
  const DeviceTime device(events);
  times.are_of_device = !device.is_empty();
  Division division(plan, device, steps, times);
  each_event(events, [&](const EventChunk& chunk, std::size_t i) {
    if (chunk.thread[i] == 0 && !is_counter(chunk.kind[i])) division.add(chunk.event(i));
  });
  each_event(events, [&](const EventChunk& chunk, std::size_t i) {
    if (chunk.thread[i] != 0 && chunk.kind[i] == EventKind::kCall) {
      division.add_busy(chunk.event(i));
    }
  });
  for (CallTime& call : times.calls) call.ns.resize(times.steps.size());
  add_counted_rows(events, plan, times);
  times.machines.push_back(machine_of(events));
  return times;
}

void append(StepTimes& times, const StepTimes& more) {
  CHECK_INVARIANT(times.calls.size() == more.calls.size());
  if (times.run_steps.empty()) times.run_steps.push_back(times.steps.size());
  times.run_steps.push_back(more.steps.size());
  times.machines.insert(times.machines.end(), more.machines.begin(), more.machines.end());
  times.steps.insert(times.steps.end(), more.steps.begin(), more.steps.end());
  times.total_ns += more.total_ns;
  for (std::size_t id = 0; id < times.calls.size(); ++id) {
    CallTime& call = times.calls[id];
    const CallTime& other = more.calls[id];
    call.ns.append(other.ns);
    if (const std::int64_t runs = call.runs + other.runs; runs > 0) {
      const double share = static_cast<double>(call.runs) / static_cast<double>(runs);
      call.rows = std::lerp(other.rows, call.rows, share);
    }
    call.busy_ns += other.busy_ns;
    call.runs += other.runs;
  }
}

}  // namespace trainscope::profiler
