// Executor: runs a program's calls over its arenas. Allocates nothing in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/exec/bound_calls.h"
#include "engine/exec/execution_events.h"
#include "engine/exec/memory_events.h"
#include "engine/exec/program_memory.h"
#include "engine/exec/trip_store.h"
#include "engine/plan/program.h"
#include "kernels/api/device_tracer.h"

namespace trainscope {

// The first tensor of a step that holds what no tensor should.
struct BadTensor {
  std::string value;
  std::string node;  // empty for an input, parameter or state
  std::string op;    // of the node, else the value's kind
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t elements = 0;
};

class Executor {
 public:
  // `parameters` gives the storage of external values, by name, on the same device.
  explicit Executor(std::shared_ptr<const Program> program,
                    std::shared_ptr<const Executor> parameters = nullptr);
  // Of a program of its own.
  explicit Executor(Program program)
      : Executor(std::make_shared<const Program>(std::move(program))) {}
  // Waits for the device: what it has been given may still refer to this executor.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Program& program() const { return *program_; }
  const std::shared_ptr<const Program>& shared_program() const { return program_; }

  // What the program's values hold, between steps.
  ProgramMemory& memory() { return memory_; }
  const ProgramMemory& memory() const { return memory_; }
  void load_initial() { memory_.load_initial(); }
  bool has(std::string_view value_name) const { return memory_.has(value_name); }
  void write(std::string_view value_name, const Tensor& elements) {
    memory_.write(value_name, elements);
  }
  Tensor read(std::string_view value_name) const { return memory_.read(value_name); }

  // Forward and backward phase: what is left of them, where a cursor is inside. The inputs must
  // have been written since the last one: once they are read, their bytes hold other tensors.
  void run_micro_step();
  // The update phase, after the last micro-step.
  void run_update();

  // The call that comes next: the first one after run_micro_step() and after run_update().
  CallId cursor() const { return cursor_; }
  // Gives all calls before `call` to the device, from the cursor on; kUsage where it lies behind.
  // What they make may be read then, and the functions above go on from there. Where a call fails,
  // here and above, the step is over and the cursor at its beginning.
  void run_until(CallId call);

  // Copies bytes of an output of a call, from `offset` of it on: what the call has made, as long as
  // none after it uses these bytes. For listeners that want calls one at a time, at a call's end.
  void read_output(CallId call, std::size_t output, std::uint64_t offset,
                   std::span<std::byte> bytes) const;
  // ... of an input of a call: what it would read if it came now.
  void read_input(CallId call, std::size_t input, std::uint64_t offset,
                  std::span<std::byte> bytes) const;

  // How long the call that comes next takes by itself, on what its inputs hold: the least of a few
  // times, in seconds. 0 for a copy and a program. It still comes next.
  double seconds_of_next() {
    meet_streams();
    return calls_.seconds_alone(cursor_);
  }

  // The highest byte that any buffer bound so far ends at, workspaces in full, in whole units of
  // the plan's alignment. Equal to program().arena().bytes after a full step.
  std::int64_t used_bytes() const { return used_bytes_; }
  // The same of host memory; equal to program().space(Space::kHost).bytes after a full step.
  std::int64_t used_host_bytes() const { return used_host_bytes_; }
  // What loops with more trips than the plan has room for have needed beside it.
  BeyondPlan beyond_plan() const { return calls_.beyond_plan(); }
  bool guard_intact() const { return memory_.guard_intact(); }

  // The first bad input, parameter or state; if there is none, runs forward and backward again and
  // names the first tensor with a NaN, or else the first with +infinity. (-infinity is what
  // attention masks are made of.) The inputs must have been written again: a step uses their bytes
  // for other tensors once they are read.
  std::optional<BadTensor> find_bad_tensor();

  // From now on the tracer is told which call the device's work is of; null: nobody is. Lists of
  // work are captured anew. Outside of steps.
  void trace(DeviceTracer* tracer);
  // Whether the device is given steps as lists that it replays, as long as nobody wants their
  // calls.
  bool replays() const { return can_replay_ && !memory_.listeners().want_calls(); }

  // As long as the subscription is there the listener is told of what this executor does. It begins
  // and ends outside of steps.
  Subscription listen(ExecutionEvents& listener);
  Subscription listen(std::shared_ptr<ExecutionEvents> listener);

 private:
  void welcome(ExecutionEvents& listener);
  void read_operand(const TensorView& view, std::uint64_t offset, std::span<std::byte> bytes) const;
  static std::shared_ptr<const ProgramMemory> memory_of(std::shared_ptr<const Executor> executor);
  std::vector<ValueId> given_values() const;
  std::vector<BadTensor> bad_results(CallId begin, CallId end) const;
  void run_part(StepPart part, CallId begin, CallId end);
  void run_to(CallId end);
  void run_within(CallId end);
  void enter(StepPart part);
  void leave();
  template <class F>
  void or_abandon(F run);
  void run_call(CallId call);
  void run_section(std::size_t section);
  void meet_streams();
  void tell_tracer(std::uint32_t call) {
    if (tracer_ != nullptr) tracer_->at_call(call);
  }
  void note_used(CallId call);
  void rewind();
  void refuse_inside(CallId begin, CallId end) const;
  std::unique_ptr<CapturedWork> capture_to(CallId end);
  bool replay(StepPart part, CallId begin, CallId end);

  const std::shared_ptr<const Program> program_;
  ProgramMemory memory_;
  BoundCalls calls_;
  CallId cursor_{0};
  std::size_t section_ = 0;  // the next one
  CallId noted_{0};          // what calls before it use is noted
  std::int64_t used_bytes_ = 0;
  std::int64_t used_host_bytes_ = 0;
  bool can_replay_ = false;
  std::unique_ptr<CapturedWork> captured_[2];  // by part
  DeviceTracer* tracer_ = nullptr;

  std::optional<StepPart> inside_;             // the part that has begun and not ended
  std::optional<MemoryEvents> memory_events_;  // where somebody wants them
};

}  // namespace trainscope
