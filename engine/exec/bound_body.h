// A call's body at the addresses of the call: the arena is the call's workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/exec/bound_calls.h"
#include "engine/exec/trip_store.h"

namespace trainscope {

// A call with a body, its operands' addresses, and what holds the slices of trips beyond its room.
struct BodyCall {
  const Program& around;
  const Call& call;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::byte* workspace = nullptr;
  TripStore& beyond;
};

class BoundBody {
 public:
  explicit BoundBody(const BodyCall& of);

  // All trips. The host waits for the device to learn how many there are, where that is an input,
  // and behind each trip where that says whether another one follows. What trips beyond the plan's
  // room leave to a gradient lies in the second arena. Fails with kRunFailed where it cannot, or
  // where there are more than kMostTrips.
  void run(CallId within, const ExecutionListeners& listeners);

  // Of bodies within this one.
  BeyondPlan beyond_plan() const { return calls_.beyond_plan(); }

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
  ValueId around(const std::vector<Operand>& operands, int i) const {
    return operands[static_cast<std::size_t>(i)].value;
  }
  bool is_beyond(std::int64_t number) const { return trips().most >= 0 && number >= trips().most; }
  bool may_grow(std::int64_t count) const;
  void require_room(std::int64_t count) const;
  void take_slices(std::int64_t number) const;
  void store_plain() const;
  void carry() const;
  bool goes_on() const;
  void store(std::int64_t count) const;
  void refuse_more(std::int64_t count) const;

  const Program& around_;
  const Call& call_;
  const std::shared_ptr<const CallBody> body_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  std::byte* workspace_;
  TripStore& beyond_;
  BoundCalls calls_;
};

}  // namespace trainscope
