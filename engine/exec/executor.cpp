// Execution: a step is a loop over bound calls.
#include "engine/exec/executor.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/device_work.h"

namespace trainscope {
namespace {

constexpr CallId next(CallId call) { return CallId(static_cast<std::int32_t>(call) + 1); }

bool has_bodies(const Program& program) {
  return std::ranges::any_of(program.calls, [](const Call& call) { return call.body != nullptr; });
}

}  // namespace

Executor::Executor(std::shared_ptr<const Program> program,
                   std::shared_ptr<const Executor> parameters)
    : program_(std::move(program)),
      memory_(program_, memory_of(std::move(parameters))),
      calls_(program_, [this](BufferId id) { return memory_.address(id); }),
      // What a body does depends on the step.
      can_replay_(program_->device->facts().replays && !has_bodies(*program_)) {
  CHECK_INVARIANT(program_->runs);
  start_threads(*program_->device, program_->threads);
  for (const PlannedBuffer& buffer : program_->buffers) {
    const bool is_given = buffer.role <= BufferRole::kInput;
    if (buffer.external || buffer.space == Space::kHost || !is_given) continue;
    const std::int64_t unit = program_->arena().alignment_bytes;
    used_bytes_ = std::max(used_bytes_, buffer.offset + (buffer.bytes + unit - 1) / unit * unit);
  }
}

std::shared_ptr<const ProgramMemory> Executor::memory_of(std::shared_ptr<const Executor> executor) {
  const ProgramMemory* memory = executor == nullptr ? nullptr : &executor->memory_;
  return {std::move(executor), memory};
}

// A failure of the device was reported to whoever waited for it before, or is nobody's any more.
Executor::~Executor() {
  for (const Stream stream : {kComputeStream, kTransferStream}) {
    (void)memory_.device().synchronize(memory_.device().record(stream));
  }
}

// Each call once: its bytes are the same in every step.
void Executor::note_used(CallId call) {
  if (call < noted_) return;
  if (call == noted_) noted_ = next(noted_);
  used_bytes_ = std::max(used_bytes_, calls_.end_bytes(call, Space::kDevice));
  used_host_bytes_ = std::max(used_host_bytes_, calls_.end_bytes(call, Space::kHost));
}

void Executor::run_call(CallId id) {
  const ExecutionListeners& listeners = memory_.listeners();
  tell_tracer(static_cast<std::uint32_t>(id));
  if (!listeners.want_calls()) [[likely]] {
    note_used(id);
    calls_.issue(id, listeners);
    return;
  }
  if (memory_events_) memory_events_->enter(program_->call(id).time, listeners);
  const CallEvent event{.call = id};
  if (listeners.one_at_a_time()) meet_streams();
  listeners.tell([&](ExecutionEvents& each) { each.call_begin(event); });
  note_used(id);
  calls_.issue(id, listeners);
  if (listeners.one_at_a_time()) meet_streams();
  tell_tracer(kOutsideTracedCalls);  // what a listener copies is no part of the call
  listeners.tell([&](ExecutionEvents& each) { each.call_end(event); });
}

// Who reads or changes memory between calls does so on the compute stream and waits for that: so it
// comes after the transfers, and they need not wait for it.
void Executor::meet_streams() {
  if (program_->space(Space::kHost).bytes == 0) return;
  Device& device = memory_.device();
  check(device.wait(kComputeStream, device.record(kTransferStream)));
}

// Each thread has its own tile's calls; those of other streams that they wait for are waited for
// before all of them.
void Executor::run_section(std::size_t index) {
  const TiledSection& section = program_->sections[index];
  const ExecutionListeners& listeners = memory_.listeners();
  if (!listeners.none()) {
    if (memory_events_) memory_events_->enter(program_->call(section.begin).time, listeners);
    listeners.tell([&](ExecutionEvents& each) { each.section_begin(index); });
  }
  calls_.wait_for_all(section.begin, section.end);
  for (CallId id = std::max(noted_, section.begin); id < section.end; id = next(id)) note_used(id);
  struct Context {  // by value: each indirection costs a thread that has slept a cache miss
    BoundCalls& calls;
    const ExecutionListeners& listeners;
    std::int32_t begin;
    std::int32_t end;
    std::int32_t tiles;
  } context{calls_, listeners, static_cast<std::int32_t>(section.begin),
            static_cast<std::int32_t>(section.end), section.tiles};
  const auto run_tile = [](void* given, int tile) {
    const auto& [calls, told, begin, end, tiles] = *static_cast<const Context*>(given);
    for (std::int32_t i = begin + tile; i < end; i += tiles) {
      const CallEvent event{.call = CallId(i), .thread = tile};
      told.tell([&](ExecutionEvents& each) { each.call_begin(event); });
      calls.issue_tile(CallId(i), told);
      told.tell([&](ExecutionEvents& each) { each.call_end(event); });
    }
  };
  program_->device->fork()(section.tiles, listeners.thread_watch(), &context, run_tile);
  calls_.note_done(section.begin, section.end);
  listeners.tell([&](ExecutionEvents& each) { each.section_end(index); });
}

// Calls of one part: [cursor, end).
void Executor::run_within(CallId end) {
  const std::vector<TiledSection>& sections = program_->sections;
  const bool forks = !memory_.listeners().one_at_a_time() && !sections.empty() &&
                     program_->device->fork() != nullptr;
  while (cursor_ < end) {
    while (section_ < sections.size() && sections[section_].begin < cursor_) ++section_;
    const bool at_section = section_ < sections.size() && sections[section_].begin == cursor_;
    if (forks && at_section && sections[section_].end <= end) {
      run_section(section_);
      cursor_ = sections[section_].end;
    } else {
      run_call(cursor_);
      cursor_ = next(cursor_);
    }
  }
  tell_tracer(kOutsideTracedCalls);
}

void Executor::enter(StepPart part) {
  if (inside_ == part) return;
  if (inside_) leave();
  inside_ = part;
  const ExecutionListeners& listeners = memory_.listeners();
  if (!listeners.wants_memory()) memory_events_.reset();
  if (listeners.none()) return;
  listeners.tell([&](ExecutionEvents& each) { each.part_begin(part); });
  if (!memory_events_) return;
  memory_events_->begin_at(part == StepPart::kUpdate ? program_->update_time : 0, listeners);
}

void Executor::leave() {
  const StepPart part = *std::exchange(inside_, std::nullopt);
  const ExecutionListeners& listeners = memory_.listeners();
  if (listeners.none()) return;
  const std::int64_t end = part == StepPart::kUpdate ? program_->times : program_->update_time;
  if (memory_events_) memory_events_->leave_until(end, listeners);
  listeners.tell([&](ExecutionEvents& each) { each.part_end(part); });
}

// A step that fails is over: the next call is the first one again.
template <class F>
void Executor::or_abandon(F run) {
  try {
    run();
  } catch (...) {
    rewind();
    tell_tracer(kOutsideTracedCalls);
    if (const auto part = std::exchange(inside_, std::nullopt)) {
      memory_.listeners().tell([&](ExecutionEvents& each) { each.part_failed(*part); });
    }
    throw;
  }
}

void Executor::run_to(CallId end) {
  or_abandon([&] {
    while (cursor_ < end) {
      const bool is_update = cursor_ >= program_->update_begin;
      enter(is_update ? StepPart::kUpdate : StepPart::kMicroStep);
      run_within(is_update ? end : std::min(end, program_->update_begin));
    }
  });
}

std::unique_ptr<CapturedWork> Executor::capture_to(CallId end) {
  Device& device = memory_.device();
  std::unique_ptr<CapturedWork> work;
  check(device.begin_capture());
  try {
    run_within(end);
  } catch (...) {
    (void)device.end_capture(&work);  // or the device would go on recording
    throw;
  }
  check(device.end_capture(&work));
  return work;
}

// Once captured, a part is replayed; where somebody wants its calls each is given by itself.
bool Executor::replay(StepPart part, CallId begin, CallId end) {
  if (!replays() || cursor_ != begin) return false;
  or_abandon([&] {
    enter(part);
    std::unique_ptr<CapturedWork>& work = captured_[static_cast<std::size_t>(part)];
    if (work == nullptr) work = capture_to(end);
    check(memory_.device().replay(*work));
    cursor_ = end;
    leave();
  });
  return true;
}

void Executor::run_part(StepPart part, CallId begin, CallId end) {
  if (replay(part, begin, end)) return;
  enter(part);
  run_to(end);
  leave();
}

void Executor::rewind() {
  cursor_ = CallId{0};
  section_ = 0;
}

void Executor::refuse_inside(CallId begin, CallId end) const {
  if (begin <= cursor_ && cursor_ <= end) return;
  fail(ErrorCode::kUsage, "the next call is {}, in another part of the step",
       static_cast<std::int32_t>(cursor_));
}

void Executor::run_micro_step() {
  refuse_inside(CallId{0}, program_->update_begin);
  run_part(StepPart::kMicroStep, CallId{0}, program_->update_begin);
  rewind();
}

void Executor::run_update() {
  const auto end = CallId(static_cast<std::int32_t>(program_->calls.size()));
  if (cursor_ == CallId{0}) cursor_ = program_->update_begin;
  refuse_inside(program_->update_begin, end);
  run_part(StepPart::kUpdate, program_->update_begin, end);
  rewind();
}

void Executor::run_until(CallId call) {
  const auto end = CallId(static_cast<std::int32_t>(program_->calls.size()));
  if (call < cursor_ || call > end) {
    fail(ErrorCode::kUsage, "call {} is not between the next one, {}, and the end, {}",
         static_cast<std::int32_t>(call), static_cast<std::int32_t>(cursor_),
         static_cast<std::int32_t>(end));
  }
  run_to(call);
  meet_streams();
}

void Executor::read_output(CallId call, std::size_t output, std::uint64_t offset,
                           std::span<std::byte> bytes) const {
  read_operand(calls_.outputs(call)[output], offset, bytes);
}

void Executor::read_input(CallId call, std::size_t input, std::uint64_t offset,
                          std::span<std::byte> bytes) const {
  read_operand(calls_.inputs(call)[input], offset, bytes);
}

void Executor::read_operand(const TensorView& view, std::uint64_t offset,
                            std::span<std::byte> bytes) const {
  CHECK_INVARIANT(offset + bytes.size() <= view.type.bytes());
  copy_and_wait(memory_.device(), bytes.data(), static_cast<const std::byte*>(view.data) + offset,
                bytes.size());
}

void Executor::trace(DeviceTracer* tracer) {
  tracer_ = tracer;
  for (std::unique_ptr<CapturedWork>& work : captured_) work.reset();
}

Subscription Executor::listen(ExecutionEvents& listener) {
  Subscription subscription(memory_.shared_listeners(), listener);
  welcome(listener);
  return subscription;
}

Subscription Executor::listen(std::shared_ptr<ExecutionEvents> listener) {
  ExecutionEvents& events = *listener;
  Subscription subscription(memory_.shared_listeners(), std::move(listener));
  welcome(events);
  return subscription;
}

void Executor::welcome(ExecutionEvents& listener) {
  if (!memory_events_ && listener.wants_memory()) memory_events_.emplace(*program_);
  if (!listener.wants_threads()) return;
  for (int t = 1; t < program_->threads; ++t) listener.thread_state(t, ThreadState::kIdle);
}

}  // namespace trainscope
