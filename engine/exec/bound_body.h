// A call's body at the addresses of the call: the arena is the call's workspace.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/exec/bound_calls.h"

namespace trainscope {

class BoundBody {
 public:
  // `inputs`, `outputs` and `workspace` are the call's.
  BoundBody(std::shared_ptr<const CallBody> body, std::span<const TensorView> inputs,
            std::span<const TensorView> outputs, std::byte* workspace);

  // All trips. The host waits for the device to learn how many there are, where that is an input.
  void run(CallId within, const ExecutionListeners& listeners);

 private:
  const Program& program() const { return *body_->program; }
  Device& device() const { return *program().device; }
  // Of a value of the body.
  std::byte* address(ValueId value) const;
  void copy(std::byte* to, const void* from, std::size_t bytes) const;
  std::int64_t trips() const;
  void load() const;
  void trip(CallId within, std::int64_t number, const ExecutionListeners& listeners);
  void store(bool any_trip) const;
  // The input that the output's elements are carried to; -1: none.
  int carried_to(int output) const;

  const std::shared_ptr<const CallBody> body_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  std::byte* workspace_;
  BoundCalls calls_;
};

}  // namespace trainscope
