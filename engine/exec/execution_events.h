// Events of a program's execution, for whoever watches it: profilers, checks, tests.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/plan/program.h"

namespace trainscope {

enum class StepPart : std::uint8_t { kMicroStep, kUpdate };

// A call on one thread. `within`: the call of the outer program whose body it is in, and which
// trip, from 0; kNoCall outside of bodies.
struct CallEvent {
  CallId call = kNoCall;
  int thread = 0;
  CallId within = kNoCall;
  std::int64_t trip = 0;
};

// A copy between the host's own memory and a program's. Those in and out of a body belong to the
// call that runs it.
enum class CopyKind : std::uint8_t {
  kBind,     // an input of a step, or a value from a checkpoint
  kInitial,  // what parameters, states and constants start from
  kRead,
};
std::string_view name_of(CopyKind kind);

struct CopyEvent {
  CopyKind kind = CopyKind::kBind;
  ValueId value = kNoValue;
  std::int64_t bytes = 0;
};

// Functions come in pairs around what they name, from the thread that does it: those of calls in a
// section of batch tiles, and those of threads in a region, from several at once. They must not
// throw, and should neither allocate nor wait. On a device with queues of its own a call begins and
// ends when it is given to the device.
class ExecutionEvents {
 public:
  virtual ~ExecutionEvents() = default;

  virtual void part_begin(StepPart) {}
  virtual void part_end(StepPart) {}
  // Instead of the part's end, and of the ends of all that is open in it: a call has failed.
  virtual void part_failed(StepPart) {}

  virtual void call_begin(const CallEvent&) {}
  virtual void call_end(const CallEvent&) {}
  // Several threads run a section's calls until all have done theirs.
  virtual void section_begin(std::size_t /*section*/) {}
  virtual void section_end(std::size_t /*section*/) {}

  virtual void copy_begin(const CopyEvent&) {}
  virtual void copy_end(const CopyEvent&) {}

  // Before the first call at a time, and after the last; for those who want them.
  virtual void memory_bound(std::int64_t /*time*/, std::span<const BufferId>) {}
  virtual void memory_freed(std::int64_t /*time*/, std::span<const BufferId>) {}

  // Inside kernels of the device's own: a region is what several threads work on, each for itself,
  // until all are done; 0 is the calling thread. A library's own threads are not seen.
  virtual void region_begin(int /*threads*/) {}
  virtual void region_end() {}
  virtual void thread_begin(int /*thread*/) {}
  virtual void thread_end(int /*thread*/) {}

  // Whether the four above are wanted, and those of memory: they cost more than the others.
  virtual bool wants_threads() const { return false; }
  virtual bool wants_memory() const { return false; }
  // Whether calls must come one at a time: batch tiles then run in turn, on one thread.
  virtual bool one_at_a_time() const { return false; }
};

// Those who listen to one executor, in the order in which they came.
class ExecutionListeners {
 public:
  bool none() const { return list_.empty(); }
  void add(ExecutionEvents& listener) { list_.push_back(&listener); }
  void remove(ExecutionEvents& listener) { std::erase(list_, &listener); }

  template <class F>
  void tell(F f) const {
    for (ExecutionEvents* listener : list_) f(*listener);
  }
  bool wants_threads() const;
  bool wants_memory() const;
  bool one_at_a_time() const;

 private:
  std::vector<ExecutionEvents*> list_;
};

}  // namespace trainscope
