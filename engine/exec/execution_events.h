// Events of a program's execution, for whoever watches it: profilers, checks, tests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/plan/program.h"

namespace trainscope {

// What a step is made of: a micro-step (forward and backward) for each micro-batch, then the
// update.
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

// What a thread is at. Loops that several threads divide among each other are regions: those inside
// of kernels of the device's own, and sections of batch tiles. Thread 0 is the calling one.
enum class ThreadState : std::uint8_t {
  kCaller,   // outside of regions: what calls and copies tell (of thread 0)
  kStart,    // it wakes the others for a region (of thread 0)
  kWork,     // at its part of a region
  kJoin,     // its part is done, others' are not: it waits
  kIdle,     // nobody has given it work (of the others)
  kLibrary,  // a library has it for loops of its own, of which nothing is known (of the others)
};
std::string_view name_of(ThreadState state);

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

  // From now on the thread is in that state, until it is told of the next one. The first are told
  // when the listener is added: idle, of all threads but 0. Threads tell of themselves, but for
  // what ends a wait of several threads at a time: that is told by thread 0, before they go on.
  virtual void thread_state(int /*thread*/, ThreadState) {}

  // Whether each call is to be told, and so must be given to the device by itself; parts and copies
  // are told of lists that are replayed, too.
  virtual bool wants_calls() const { return true; }
  // Whether states are wanted, and what is told of memory: they cost more than the others.
  virtual bool wants_threads() const { return false; }
  virtual bool wants_memory() const { return false; }
  // Whether calls must come one at a time: batch tiles then run in turn, on one thread.
  virtual bool one_at_a_time() const { return false; }
};

// Those who listen to one executor, in the order in which they came.
class ExecutionListeners {
 public:
  ExecutionListeners() = default;
  ExecutionListeners(const ExecutionListeners&) = delete;
  ExecutionListeners& operator=(const ExecutionListeners&) = delete;

  bool none() const { return list_.empty(); }
  bool want_calls() const { return want_calls_; }

  template <class F>
  void tell(F f) const {
    for (ExecutionEvents* listener : list_) f(*listener);
  }
  // What kernels tell of their threads comes to those who want it; null: nobody does.
  const ThreadWatch* thread_watch() const { return watch_.context == nullptr ? nullptr : &watch_; }
  bool wants_memory() const;
  bool one_at_a_time() const { return one_at_a_time_; }

 private:
  friend class Subscription;
  void add(ExecutionEvents& listener);
  void remove(ExecutionEvents& listener);

  ThreadWatch watch_;
  std::vector<ExecutionEvents*> list_;
  bool want_calls_ = false;     // somebody does
  bool one_at_a_time_ = false;  // somebody wants calls so
};

// That somebody listens to an executor: until this is destroyed, or given another one, and no
// longer than the executor is there. A listener that subscribes itself keeps its subscription; of
// a shared one the subscription has a share.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;  // to nothing
  Subscription(const std::shared_ptr<ExecutionListeners>& listeners, ExecutionEvents& listener);
  Subscription(const std::shared_ptr<ExecutionListeners>& listeners,
               std::shared_ptr<ExecutionEvents> listener);
  Subscription(Subscription&& other) noexcept;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

  explicit operator bool() const { return listener_ != nullptr; }

 private:
  void end();

  std::weak_ptr<ExecutionListeners> listeners_;
  ExecutionEvents* listener_ = nullptr;
  std::shared_ptr<ExecutionEvents> share_;
};

}  // namespace trainscope
