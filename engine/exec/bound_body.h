// A call's body at the addresses of the call: the arena is the call's workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/exec/bound_calls.h"

namespace trainscope {

class BoundBody {
 public:
  // `inputs`, `outputs` and `workspace` are the call's.
  BoundBody(std::shared_ptr<const CallBody> body, std::span<const TensorView> inputs,
            std::span<const TensorView> outputs, std::byte* workspace);

  // All trips. The host waits for the device to learn how many there are, where that is an input,
  // and behind each trip where that says whether another one follows. Fails with kRunFailed where
  // there is no room for so many.
  void run(CallId within, const ExecutionListeners& listeners);

 private:
  const Program& program() const { return *body_->program; }
  const Trips& trips() const { return body_->trips; }
  Device& device() const { return *program().device; }
  // Of a value of the body, by its place among the graph's inputs or outputs.
  ValueId input(int i) const { return program().graph.inputs[static_cast<std::size_t>(i)]; }
  ValueId output(int i) const { return program().graph.outputs[static_cast<std::size_t>(i)]; }
  std::byte* address(ValueId value) const;
  std::size_t bytes_of(ValueId value) const { return program().graph.value(value).type.bytes(); }

  void copy(std::byte* to, const void* from, std::size_t bytes) const;
  std::int64_t wanted_trips() const;
  bool is_carried_to(int input) const;
  void load(std::int64_t count) const;
  void give_slices(std::int64_t number) const;
  void run_calls(CallId within, std::int64_t number, const ExecutionListeners& listeners);
  void take_slices(std::int64_t number) const;
  void store_plain() const;
  void carry() const;
  bool goes_on() const;
  void store(std::int64_t count) const;
  void refuse_more(std::int64_t count) const;

  const std::shared_ptr<const CallBody> body_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  std::byte* workspace_;
  BoundCalls calls_;
};

}  // namespace trainscope
