// A program's calls at addresses of a device: pointers are resolved once, a step is a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/exec/execution_events.h"
#include "engine/plan/program.h"

namespace trainscope {

class BoundBody;
class TripStore;
struct BeyondPlan;

class BoundCalls {
 public:
  // Where a buffer begins; null where it has no bytes.
  using AddressOf = std::function<std::byte*(BufferId)>;

  BoundCalls(std::shared_ptr<const Program> program, const AddressOf& address_of);
  ~BoundCalls();
  BoundCalls(const BoundCalls&) = delete;

  const Program& program() const { return *program_; }
  std::size_t size() const { return calls_.size(); }
  std::span<const TensorView> inputs(CallId call) const { return at(call).inputs; }
  std::span<const TensorView> outputs(CallId call) const { return at(call).outputs; }

  // Gives the call to its stream, after the waits that it asks for. Body calls are told to the
  // listeners. Fails with the node's name.
  void issue(CallId call, const ExecutionListeners& listeners);
  // The waits of the calls [begin, end) before all of them.
  void wait_for_all(CallId begin, CallId end);
  // Gives a call of a section to its stream, from the thread of its batch tile. It waits for
  // nothing and records nothing: wait_for_all() comes before the section, note_done() behind it.
  void issue_tile(CallId call, const ExecutionListeners& listeners);
  void note_done(CallId begin, CallId end);
  // Runs the call's kernel by itself, a few times: the least of its times, in seconds; 0 where it
  // has none. Its inputs are what they were then, its results are not made.
  double seconds_alone(CallId call) const;

  // What trips beyond the plan's room have needed, also of loops in bodies.
  BeyondPlan beyond_plan() const;

  // The highest byte that a buffer of the call ends at, in whole units of the plan's alignment.
  std::int64_t end_bytes(CallId call, Space space) const {
    return space == Space::kHost ? at(call).host_end_bytes : at(call).end_bytes;
  }

 private:
  struct Bound {
    std::span<const TensorView> inputs;
    std::span<const TensorView> outputs;
    void* workspace = nullptr;
    std::int64_t end_bytes = 0;
    std::int64_t host_end_bytes = 0;
    bool is_awaited = false;  // by a call of another stream
    Event done = {};
    std::unique_ptr<BoundBody> body;
  };
  const Bound& at(CallId call) const { return calls_[static_cast<std::size_t>(call)]; }
  Bound& at(CallId call) { return calls_[static_cast<std::size_t>(call)]; }
  void bind(const Call& call, const AddressOf& address_of);
  void note_end(BufferId buffer, Bound& bound) const;
  RunArgs arguments(const Call& call, const Bound& bound) const;
  void launch_kernel(const Call& call, const Bound& bound, const ThreadWatch* watch);

  const std::shared_ptr<const Program> program_;
  std::vector<TensorView> views_;      // of all operands; reserved, so spans stay
  std::vector<Bound> calls_;           // by CallId
  bool has_waits_ = false;             // whether a call waits for one of another stream
  std::unique_ptr<TripStore> beyond_;  // where a call has a body
};

}  // namespace trainscope
