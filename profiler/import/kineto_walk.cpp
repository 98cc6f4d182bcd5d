// Spans by their begin, with a stack of those that are open.
#include "profiler/import/kineto_walk.h"

#include <algorithm>
#include <limits>

#include "profiler/import/aten_ops.h"

namespace trainscope::profiler {
namespace {

constexpr std::string_view kEngine = "autograd::engine::";

// Sums of what a trace says must not leave their range, whatever it says.
std::int64_t sum_of_flops(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  return std::min(std::min(a, kMost) + std::min(b, kMost), kMost);
}

bool begins_before(const KinetoSpan& a, const KinetoSpan& b) {
  if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
  if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
  return a.external < b.external;  // given as ops begin
}

template <class Time>
Event event_of(EventKind kind, std::uint32_t id, const Time& at) {
  return {.begin_ns = at.begin_ns,
          .value = static_cast<std::uint64_t>(at.end_ns - at.begin_ns),
          .id = id,
          .kind = kind};
}

}  // namespace

std::optional<PlanPhase> phase_named(std::string_view name) {
  if (name == "forward") return PlanPhase::kForward;
  if (name == "backward") return PlanPhase::kBackward;
  if (name == "update" || name.starts_with("Optimizer.")) return PlanPhase::kUpdate;
  return std::nullopt;
}

std::string KinetoStream::name() const {
  if (device < 0 || stream < 0) return "device work";
  return "device " + std::to_string(device) + " stream " + std::to_string(stream);
}

KinetoWalker::KinetoWalker(const KinetoTrace& trace, const ImportOptions& options)
    : trace_(trace), options_(options) {
  for (const auto& [thread, spans] : trace.devices) {
    for (const KinetoSpan& span : spans) {
      Longest& longest = longest_of_external_[span.external];
      const std::int64_t ns = span.end_ns - span.begin_ns;
      if (span.external < 0 || ns <= longest.ns) continue;
      longest = {.ns = ns, .begin_ns = span.begin_ns, .external = span.external};
    }
  }
}

void KinetoWalker::end_steps() {
  std::int64_t free_ns = std::numeric_limits<std::int64_t>::min();
  for (KinetoStep step : steps_) {
    step.begin_ns = std::max(step.begin_ns, free_ns);
    step.end_ns = std::max({step.begin_ns, step.end_ns, step.work_end_ns});
    free_ns = step.end_ns;
    builder_.add(event_of(EventKind::kStep, step.number, step));
  }
}

void KinetoWalker::walk_host(std::vector<KinetoSpan> spans, bool drives) {
  std::ranges::sort(spans, begins_before);
  std::vector<Event> calls;
  bool has_engine = false;
  for (KinetoSpan& span : spans) {
    close_until(span.begin_ns);
    if (!open_.empty()) span.end_ns = std::min(span.end_ns, open_.back().span->end_ns);
    has_engine = has_engine || name_of(span).starts_with(kEngine);
    enter(span, calls);
  }
  close_until(std::numeric_limits<std::int64_t>::max());
  place(calls, drives || has_engine, drives);
}

// Work of one stream does not overlap, but clocks are not that exact.
void KinetoWalker::walk_device(const KinetoStream& stream, std::vector<KinetoSpan> spans) {
  std::ranges::sort(spans, begins_before);
  const std::uint16_t lane = next_lane_++;
  builder_.name_thread(lane, stream.name());
  std::int64_t free_ns = std::numeric_limits<std::int64_t>::min();
  for (KinetoSpan& span : spans) {
    const KinetoStep* step = step_of_work(span);
    if (step == nullptr) continue;
    const auto longest = longest_of_external_.find(span.external);
    const bool is_longest = span.external >= 0 && longest->second.begin_ns == span.begin_ns;
    const auto flops = device_flops_.find(is_longest ? span.external : -1);
    span.flops = flops == device_flops_.end() ? 0 : flops->second;
    span.begin_ns = std::max(span.begin_ns, free_ns);
    span.end_ns = std::max(span.end_ns, span.begin_ns);
    free_ns = span.end_ns;
    KinetoStep& launched = steps_[static_cast<std::size_t>(step - steps_.data())];
    launched.work_end_ns = std::max(launched.work_end_ns, span.end_ns);
    device_call(span, *step, lane);
  }
}

const KinetoStep* KinetoWalker::step_at(std::int64_t ns) const {
  const auto after = std::ranges::upper_bound(steps_, ns, {}, &KinetoStep::begin_ns);
  if (after == steps_.begin() || std::prev(after)->end_ns < ns) return nullptr;
  return &*std::prev(after);
}

// That in which the host launched it; null: it did before the trace began, or outside of steps.
// Where the trace does not tell, that in whose time it began.
const KinetoStep* KinetoWalker::step_of_work(const KinetoSpan& span) const {
  const auto launch = trace_.launches.find(span.correlation);
  if (launch != trace_.launches.end()) return step_at(launch->second);
  if (!trace_.launches.empty() && span.correlation >= 0) return nullptr;
  const auto op = begin_of_external_.find(span.external);
  return step_at(op == begin_of_external_.end() ? span.begin_ns : op->second);
}

// How many calls with this key the step has had.
std::int64_t KinetoWalker::turn(const KinetoStep& step, const std::string& key) {
  auto& [number, count] = turns_[key];
  if (number != &step) count = 0;
  number = &step;
  return count++;
}

void KinetoWalker::close_until(std::int64_t ns) {
  while (!open_.empty() && open_.back().span->end_ns <= ns) close();
}

void KinetoWalker::close() {
  Open closed = std::move(open_.back());
  open_.pop_back();
  count_flops(closed);
  const std::int64_t ns = closed.span->end_ns - closed.span->begin_ns;
  if (closed.is_rest) {
    const std::int64_t own = std::max<std::int64_t>(0, ns - closed.inside_ns);
    builder_.attribute(name_of(*closed.span), own, false);
  }
  const bool counts = closed.is_rest || closed.call != nullptr;
  if (!open_.empty()) open_.back().inside_ns += counts ? ns : closed.inside_ns;
}

// FLOPs of an op that a device does are its longest work's; others are the host's call's. An op
// knows of none or of all that is in it.
void KinetoWalker::count_flops(Open& closed) {
  const auto own = longest_of_external_.find(closed.span->external);
  if (closed.span->external >= 0 && own != longest_of_external_.end() &&
      own->second.ns > closed.longest.ns) {
    closed.longest = own->second;
  }
  const bool is_of_outer = std::ranges::any_of(open_, [](const Open& open) {
    return open.span->kind == KinetoKind::kOp && open.span->flops > 0;
  });
  if (closed.span->kind == KinetoKind::kOp && closed.span->flops > 0 && !is_of_outer) {
    std::int64_t& flops =
        closed.longest.ns >= 0 ? device_flops_[closed.longest.external] : closed.flops;
    flops = sum_of_flops(flops, closed.span->flops);
  }
  if (closed.call_id) builder_.set_flops(*closed.call_id, closed.flops);
  if (open_.empty()) return;
  open_.back().flops = sum_of_flops(open_.back().flops, closed.flops);
  if (closed.longest.ns > open_.back().longest.ns) open_.back().longest = closed.longest;
}

void KinetoWalker::enter(const KinetoSpan& span, std::vector<Event>& calls) {
  const KinetoStep* step = step_at(span.begin_ns);
  const bool is_outer = open_.empty();
  Open open{.span = &span,
            .scope = is_outer ? "" : open_.back().scope,
            .phase = is_outer ? PlanPhase::kForward : open_.back().phase,
            .call = is_outer ? nullptr : open_.back().call,
            .is_rest = false,
            .inside_ns = 0,
            .call_id = {},
            .flops = 0,
            .longest = {}};
  const std::string& name = name_of(span);
  if (span.kind == KinetoKind::kModule) open.scope += name.substr(kModuleName.size()) + "/";
  if (const auto phase = phase_named(name)) open.phase = *phase;
  if (span.of_forward_thread) open.phase = PlanPhase::kBackward;
  if (step != nullptr && span.kind == KinetoKind::kOp) {
    if (span.external >= 0) begin_of_external_[span.external] = span.begin_ns;
    if (open.call == nullptr) begin_call(span, *step, open, calls);
    if (open.call != nullptr) remember(span, *open.call);
  }
  open_.push_back(std::move(open));
}

// What later spans find a call by.
void KinetoWalker::remember(const KinetoSpan& span, const ImportedCall& call) {
  if (span.external >= 0) by_external_[span.external] = &call;
  const bool is_forward = call.phase == PlanPhase::kForward && span.sequence >= 0;
  if (is_forward) node_of_sequence_[span.sequence] = call.node;
}

void KinetoWalker::begin_call(const KinetoSpan& span, const KinetoStep& step, Open& open,
                              std::vector<Event>& calls) {
  const std::string& name = name_of(span);
  std::string op = onnx_op_of(name);
  open.is_rest = op.empty();
  if (open.is_rest) return;
  ImportedCall call = call_of(span, step, open);
  call.op = std::move(op);
  const std::uint32_t id = builder_.call(call, turn(step, call.name + '\n' + call.kernel));
  known_.push_back(std::make_unique<ImportedCall>(std::move(call)));
  open.call = known_.back().get();
  open.call_id = id;
  calls.push_back(event_of(EventKind::kCall, id, span));
  const bool is_tied = options_.nodes.empty() || options_.nodes.contains(open.call->node);
  builder_.attribute(name, span.end_ns - span.begin_ns, is_tied);
}

ImportedCall KinetoWalker::call_of(const KinetoSpan& span, const KinetoStep& step,
                                   const Open& open) {
  ImportedCall call{
      .kernel = trace_.texts[span.kernel], .dtype = trace_.texts[span.dtype], .phase = open.phase};
  if (call.kernel.empty()) call.kernel = without_engine(name_of(span));
  if (const std::string& phase = trace_.texts[span.phase]; !phase.empty()) {
    call.phase = phase_named(phase).value_or(open.phase);
  }
  name_call(call, span, step, open.scope);
  return call;
}

// The node is the one that the trace names; of a backward op that of its forward op; else the op
// and how many of its kind are before it in the step.
void KinetoWalker::name_call(ImportedCall& call, const KinetoSpan& span, const KinetoStep& step,
                             const std::string& scope) {
  const std::string op(without_engine(name_of(span)));
  const auto forward = node_of_sequence_.find(span.sequence);
  if (span.node != 0) {
    call.node = trace_.texts[span.node];
    call.name = call.node;
  } else if (call.phase == PlanPhase::kBackward && forward != node_of_sequence_.end()) {
    call.node = forward->second;
    call.name = call.node + "/" + op;
  } else {
    const std::string key = scope + op;
    call.node = key + "#" + std::to_string(turn(step, "node\n" + key));
    call.name = call.node;
  }
}

// Calls of the autograd engine's thread go to the driving one, where it has none: it waits for
// them.
void KinetoWalker::place(std::vector<Event>& calls, bool may_drive, bool drives) {
  std::uint16_t lane = 0;
  for (Event& call : calls) {
    if (!drives && !(may_drive && is_free(call))) {
      if (lane == 0) lane = next_lane_++;
      call.thread = lane;
    }
    builder_.add(call);
  }
  std::ranges::copy_if(calls, std::back_inserter(driven_),
                       [](const Event& call) { return call.thread == 0; });
  std::ranges::sort(driven_, {}, &Event::begin_ns);
}

bool KinetoWalker::is_free(const Event& call) const {
  const KinetoStep* step = step_at(call.begin_ns);
  if (step == nullptr || call.end_ns() > step->end_ns) return false;
  const auto after = std::ranges::upper_bound(driven_, call.begin_ns, {}, &Event::begin_ns);
  if (after != driven_.end() && after->begin_ns < call.end_ns()) return false;
  return after == driven_.begin() || std::prev(after)->end_ns() <= call.begin_ns;
}

void KinetoWalker::device_call(const KinetoSpan& span, const KinetoStep& step, std::uint16_t lane) {
  const std::string& name = name_of(span);
  const auto host = by_external_.find(span.external);
  ImportedCall call;
  if (host != by_external_.end()) {
    call = *host->second;
    call.name += "/" + name;
  } else if (span.node != 0) {
    call.node = trace_.texts[span.node];
    call.name = call.node + "/" + name;
  } else {
    call.name = name;
    call.node = name;
  }
  call.kernel = name;
  const std::uint32_t id = builder_.call(call, turn(step, call.name));
  builder_.set_flops(id, span.flops);
  builder_.attribute_work(span.end_ns - span.begin_ns, host != by_external_.end());
  Event event = event_of(EventKind::kCall, id, span);
  event.thread = lane;
  builder_.add(event);
}

}  // namespace trainscope::profiler
