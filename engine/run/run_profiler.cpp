// Spans from events of the run and of its execution; counters from one step to the next.
#include "engine/run/run_profiler.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

namespace trainscope {
namespace {

using profiler::Clock;
using profiler::EventKind;
using profiler::Recorder;

constexpr std::uint16_t kFirstDeviceThread = 1;  // of the host's threads there is one then

// The machine's speed is measured on the thread that drives the steps.
constexpr Fork kOwnThread = [](int /*tiles*/, const ThreadWatch* /*watch*/, void* context,
                               void (*body)(void* context, int tile)) { body(context, 0); };

// A reader of a run that goes on sees what is older than this.
constexpr std::int64_t kLongestUnwrittenNs = 1'000'000'000;
// Between two measurements of the machine, which take a thousandth of it.
constexpr std::int64_t kProbeEveryNs = 200'000'000;

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

EventKind kind_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::kBind:
      return EventKind::kBind;
    case CopyKind::kInitial:
      return EventKind::kInitial;
    case CopyKind::kRead:
      return EventKind::kRead;
  }
  CHECK_INVARIANT(false);
}

// Of any but kCaller, which has no span: calls and copies tell what the calling thread is at.
EventKind kind_of(ThreadState state) {
  switch (state) {
    case ThreadState::kCaller:
      break;
    case ThreadState::kStart:
      return EventKind::kStart;
    case ThreadState::kWork:
      return EventKind::kWork;
    case ThreadState::kJoin:
      return EventKind::kJoin;
    case ThreadState::kIdle:
      return EventKind::kIdle;
    case ThreadState::kLibrary:
      return EventKind::kLibrary;
  }
  CHECK_INVARIANT(false);
}

std::uint32_t id_of(auto id) { return static_cast<std::uint32_t>(id); }

}  // namespace

RunProfiler::Open::Open(int lanes, Fork fork, const FolderEntry& entry, profiler::TickSource clock)
    : recorder(lanes, Recorder::kLaneEvents, Clock(clock)),
      file(entry),
      writer({.start_unix_ns = unix_ns(),
              .threads = static_cast<std::uint32_t>(lanes),
              .tick_source = static_cast<std::uint32_t>(recorder.clock().source())},
             [this](std::span<const std::byte> bytes) {
               file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
             }),
      probe(lanes, fork),
      written_ns(Clock::monotonic_ns()) {}

RunProfiler::RunProfiler(const ProfileSteps& steps, std::shared_ptr<Executor> executor,
                         FolderEntry file, std::shared_ptr<Logger> log, profiler::TickSource clock,
                         bool may_launch_singly)
    : steps_(steps),
      executor_(std::move(executor)),
      entry_(std::move(file)),
      log_(std::move(log)),
      clock_(clock),
      may_launch_singly_(may_launch_singly),
      is_queued_(executor_->memory().device().fork() == nullptr) {}

void RunProfiler::session_begin(const SessionFacts& facts) {
  session_end_ = facts.to_step;
  if (!steps_.of_session) return;
  steps_.from += facts.from_step;
  steps_.to += facts.from_step;
}

void RunProfiler::open() {
  const int lanes = is_queued_ ? 1 : executor_->program().threads;
  open_ = std::make_unique<Open>(
      lanes, is_queued_ ? kOwnThread : executor_->memory().device().fork(), entry_, clock_);
  log_->info(
      "profile: times are of the {}",
      clock_ == profiler::TickSource::kTimeStampCounter
          ? "processor's time stamp counter"
          : "system's monotonic clock, since the processor's time stamp counter does not run "
            "at one rate or is not there: a span takes twice as long to record");
  if (!open_->hardware.are_open()) {
    log_->info(
        "profile: no counters of the processor here ({}): cycles, instructions and misses "
        "are left out",
        open_->hardware.why_not());
  }
}

void RunProfiler::listen(std::int64_t step) {
  in_state_.assign(static_cast<std::size_t>(executor_->program().threads), 0);
  find_counted_rows();
  if (!is_queued_ && first_ == 0) bound_.emplace(executor_->shared_program());
  if (trace_) trace_->begin(kFirstDeviceThread, open_->recorder);
  listens_ = executor_->listen(*this);
  if (first_ == 0) first_ = step;
}

// Between steps, so that all threads but this one are idle.
void RunProfiler::pause() {
  for (std::size_t t = 0; t < in_state_.size(); ++t) {
    thread_state(static_cast<int>(t), ThreadState::kCaller);
  }
  listens_ = {};
  if (trace_) write_work(trace_->end());
  write();
}

void RunProfiler::close() {
  if (open_ == nullptr) return;
  if (listens_) pause();
  if (last_ != 0) probe_machine(last_);
  if (trace_) trace_->count(open_->recorder, id_of(last_));
  write();
  open_->file.sync();
  const std::uint64_t dropped = open_->recorder.dropped();
  const bool is_one_window = count_ == last_ - first_ + 1;
  log_->info("profile: {}steps {} to {}, {} events in {}",
             is_one_window ? "" : fmt::format("{} of ", count_), first_, last_, open_->events,
             entry_.name);
  if (dropped > 0) {
    log_->warning("profile: {} events are left out, there was no room for more in a phase",
                  dropped);
  }
  if (trace_) log_->info("profile: {}", trace_->report());
  open_.reset();
}

void RunProfiler::begin(EventKind kind, std::int64_t id) {
  if (listens_) open_->recorder.begin(0, kind, static_cast<std::uint32_t>(id));
}

void RunProfiler::end() {
  if (listens_) open_->recorder.end(0);
}

void RunProfiler::write() {
  Recorder& recorder = open_->recorder;
  recorder.drain([&](std::span<const profiler::Event> events) {
    open_->writer.add(events, left_out());
    open_->events += events.size();
  });
  if (trace_) write_work(trace_->take());
  open_->written_ns = Clock::monotonic_ns();
}

// Also of the device.
std::uint64_t RunProfiler::left_out() const {
  return open_->recorder.dropped() + (trace_ ? trace_->dropped() : 0);
}

void RunProfiler::write_work(std::vector<profiler::Event> work) {
  std::span<const profiler::Event> rest = work;
  while (!rest.empty()) {
    const auto piece = rest.first(std::min(rest.size(), profiler::kMostChunkEvents));
    open_->writer.add(piece, left_out());
    open_->events += piece.size();
    rest = rest.subspan(piece.size());
  }
}

void RunProfiler::write_if_many(std::size_t many) {
  if (open_->recorder.waiting() >= many) write();
}

// Before the session's first step is captured the device's trace begins to note its calls.
void RunProfiler::step_begin(std::int64_t step) {
  if (is_queued_ && !std::exchange(asked_for_trace_, true)) {
    trace_ = DeviceTrace::make(steps_.level, may_launch_singly_, executor_, log_);
  }
  if (step > steps_.last()) return close();
  if (!steps_.has(step)) {
    if (listens_) pause();
    return;
  }
  if (open_ == nullptr) open();
  if (!listens_) listen(step);
  if (Clock::monotonic_ns() - open_->probed_ns > kProbeEveryNs) probe_machine(step);
  open_->stolen.since_last(Clock::monotonic_ns());
  open_->system = profiler::read_system_counters();
  open_->processor = open_->hardware.read();
  begin(EventKind::kStep, step);
}

// Between steps: it takes the caches from the one that follows, and that is one of many.
void RunProfiler::probe_machine(std::int64_t step) {
  open_->recorder.begin(0, EventKind::kProbe, id_of(step));
  const profiler::MachineSpeed speed = open_->probe.measure();
  open_->recorder.end(0);
  open_->recorder.count(EventKind::kClockSpeed, id_of(step), speed.clock);
  open_->recorder.count(EventKind::kExchangeSpeed, id_of(step), speed.exchange);
  open_->probed_ns = Clock::monotonic_ns();
}

void RunProfiler::find_counted_rows() {
  const Program& program = executor_->program();
  counted_rows_.assign(program.calls.size(), kNoValue);
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    if (call.kind != CallKind::kKernel) continue;
    const int input = program.graph.node(call.node).op->count_input;
    if (input >= 0) counted_rows_[i] = call.inputs[static_cast<std::size_t>(input)].value;
  }
}

// While the call's inputs are there: other tensors may have their bytes after it.
void RunProfiler::count_rows(const CallEvent& event) {
  const bool is_whole = event.thread == 0 && event.within == kNoCall;
  const ValueId value = is_whole ? counted_rows_[static_cast<std::size_t>(event.call)] : kNoValue;
  if (value == kNoValue) return;
  std::int64_t rows = 0;
  reads_rows_ = true;
  executor_->memory().read_bytes(value, 0, std::as_writable_bytes(std::span(&rows, 1)));
  reads_rows_ = false;
  open_->recorder.count(EventKind::kCountedRows, id_of(event.call), static_cast<double>(rows));
}

// Both readings lie outside of the step's span.
void RunProfiler::count_step(const StepRecord& step) {
  const profiler::SystemCounters now = profiler::read_system_counters();
  const profiler::SystemCounters& then = open_->system;
  const auto count = [&](EventKind kind, auto value) {
    open_->recorder.count(kind, id_of(step.step), static_cast<double>(value));
  };
  count(EventKind::kLoss, step.loss);
  count(EventKind::kLearningRate, step.learning_rate);
  count(EventKind::kResidentBytes, now.resident_bytes);
  count(EventKind::kTaskClock, now.task_clock_ns - then.task_clock_ns);
  count(EventKind::kMinorFaults, now.minor_faults - then.minor_faults);
  count(EventKind::kMajorFaults, now.major_faults - then.major_faults);
  count(EventKind::kVoluntarySwitches, now.voluntary_switches - then.voluntary_switches);
  count(EventKind::kForcedSwitches, now.forced_switches - then.forced_switches);
  if (const auto stolen = open_->stolen.since_last(Clock::monotonic_ns())) {
    count(EventKind::kStolenTime, *stolen);
  }
  const auto processor = open_->hardware.read();
  if (!processor || !open_->processor) return;
  for (std::size_t i = 0; i < processor->size(); ++i) {
    count(profiler::kHardwareKinds[i], (*processor)[i] - (*open_->processor)[i]);
  }
}

void RunProfiler::step_end(const StepRecord& step, std::int64_t /*used_bytes*/) {
  const bool may_be_ahead = trace_ != nullptr;  // of its device
  if (!may_be_ahead) end();
  if (trace_) trace_->note_step(step.step_ms);
  if (!listens_) return;
  bound_.reset();  // it is the same in every step
  // Early: launches that the library does not tie are seen, and helped, in all steps but one.
  const bool is_early = trace_ && step.step == first_;
  const bool is_last = !steps_.has(step.step + 1) || step.step == session_end_;
  const bool is_late = Clock::monotonic_ns() - open_->written_ns > kLongestUnwrittenNs;
  const bool writes = is_early || is_late || open_->recorder.waiting() >= Recorder::kLaneEvents / 8;
  // Where the device is waited for, what it does is of this step.
  if (may_be_ahead && (writes || is_last)) trace_->wait();
  if (may_be_ahead) end();
  count_step(step);
  last_ = step.step;
  ++count_;
  if (writes) write();
}

void RunProfiler::batch_wait_begin(const StepPlace& at) {
  begin(EventKind::kBatchWait, at.micro_batch);
}
void RunProfiler::batch_wait_end(const StepPlace& /*at*/, double /*milliseconds*/) { end(); }

void RunProfiler::inputs_begin(const StepPlace& at) { begin(EventKind::kInputs, at.micro_batch); }
void RunProfiler::inputs_end(const StepPlace& /*at*/) { end(); }
void RunProfiler::results_begin(const StepPlace& at) { begin(EventKind::kResults, at.micro_batch); }
void RunProfiler::results_end(const StepPlace& /*at*/) { end(); }
void RunProfiler::rank_wait_begin(const StepPlace& at) {
  begin(EventKind::kRankWait, at.micro_batch);
}
void RunProfiler::rank_wait_end(const StepPlace& /*at*/) { end(); }

void RunProfiler::evaluation_begin(std::int64_t step) { begin(EventKind::kEvaluation, step); }
void RunProfiler::evaluation_end(const EvaluationRecord& /*evaluation*/) { end(); }
void RunProfiler::evaluation_stopped(std::int64_t /*step*/) { end(); }
void RunProfiler::checkpoint_begin(std::int64_t step) { begin(EventKind::kCheckpoint, step); }
void RunProfiler::checkpoint_end(std::int64_t /*step*/, const std::filesystem::path& /*folder*/) {
  end();
}

void RunProfiler::session_end(RunStatus /*status*/) {
  close();
  if (first_ != 0) return;
  log_->warning("profile: the session made none of the steps {} to {}, so there is no profile",
                steps_.from, steps_.to);
}

void RunProfiler::session_failed(const Error& /*error*/) {
  if (open_ != nullptr) open_->recorder.forget_open();
  close();
}

// The session ends: what is open stays out of the profile.
void RunProfiler::part_failed(StepPart /*part*/) { open_->recorder.forget_open(); }

// Where others want them, calls of a device that computes by itself are told, too: it has its own.
void RunProfiler::call_begin(const CallEvent& event) {
  if (is_queued_) return;
  const EventKind kind = event.within == kNoCall ? EventKind::kCall : EventKind::kBodyCall;
  open_->recorder.begin(event.thread, kind, id_of(event.call));
}
void RunProfiler::call_end(const CallEvent& event) {
  if (is_queued_) return;
  open_->recorder.end(event.thread);
  count_rows(event);
}

void RunProfiler::section_begin(std::size_t section) {
  open_->recorder.begin(0, EventKind::kSection, id_of(section));
}
void RunProfiler::section_end(std::size_t /*section*/) { open_->recorder.end(0); }

void RunProfiler::copy_begin(const CopyEvent& event) {
  if (reads_rows_) return;
  open_->recorder.begin(0, kind_of(event.kind), id_of(event.value));
}
void RunProfiler::copy_end(const CopyEvent& /*event*/) {
  if (!reads_rows_) open_->recorder.end(0);
}

void RunProfiler::part_begin(StepPart part) {
  begin(EventKind::kStepPart, static_cast<std::int64_t>(part));
  if (!bound_ || part != StepPart::kMicroStep) return;
  bound_->begin();
  count_bound(0);
}

// Between parts of a step all threads but this one are idle. Behind the update the step ends, too.
void RunProfiler::part_end(StepPart part) {
  if (bound_ && part == StepPart::kUpdate) count_bound(uncounted_bound_);
  end();
  if (part == StepPart::kMicroStep) write_if_many(Recorder::kLaneEvents / 2);
}

void RunProfiler::memory_bound(std::int64_t time, std::span<const BufferId> buffers) {
  if (uncounted_bound_ != time) count_bound(uncounted_bound_);
  bound_->add(buffers);
  count_bound(time);
}

// From the next time on, which may bind others: one event a time is enough.
void RunProfiler::memory_freed(std::int64_t time, std::span<const BufferId> buffers) {
  count_bound(uncounted_bound_);
  if (bound_->remove(buffers)) uncounted_bound_ = time + 1;
}

void RunProfiler::count_bound(std::int64_t time) {
  uncounted_bound_ = kNoTime;
  if (time == kNoTime) return;
  open_->recorder.count(EventKind::kBoundBytes, static_cast<std::uint32_t>(time),
                        static_cast<double>(bound_->bytes()));
}

void RunProfiler::thread_state(int thread, ThreadState state) {
  std::uint8_t& is_in_one = in_state_[static_cast<std::size_t>(thread)];
  const bool was_in_one = is_in_one != 0;
  is_in_one = state != ThreadState::kCaller;
  Recorder& recorder = open_->recorder;
  if (!is_in_one) {
    if (was_in_one) recorder.end(thread);
  } else if (was_in_one) {
    recorder.end_and_begin(thread, kind_of(state), id_of(thread));
  } else {
    recorder.begin(thread, kind_of(state), id_of(thread));
  }
}

}  // namespace trainscope
