// A complete timeline in forty lines: a listener that prints what each thread does, and when.
#pragma once

#include <chrono>
#include <mutex>
#include <ostream>
#include <string_view>

#include "engine/exec/execution_events.h"

namespace trainscope::test {

// A line: nanoseconds, thread, and what begins or ends there with its id, or the thread's state.
class PrintedTimeline final : public ExecutionEvents {
 public:
  explicit PrintedTimeline(std::ostream& out) : out_(out) {}

  void call_begin(const CallEvent& event) override { say(event.thread, "begin call", event.call); }
  void call_end(const CallEvent& event) override { say(event.thread, "end call", event.call); }
  void copy_begin(const CopyEvent& event) override { say(0, "begin copy", event.value); }
  void copy_end(const CopyEvent& event) override { say(0, "end copy", event.value); }
  void section_begin(std::size_t section) override { say(0, "begin section", section); }
  void section_end(std::size_t section) override { say(0, "end section", section); }
  void part_begin(StepPart part) override { say(0, "begin part", part); }
  void part_end(StepPart part) override { say(0, "end part", part); }
  void thread_state(int thread, ThreadState state) override { say(thread, name_of(state)); }
  bool wants_threads() const override { return true; }

 private:
  template <class Id = int>
  void say(int thread, std::string_view what, Id id = {}) {
    const std::scoped_lock lock(mutex_);  // threads of a section print at once
    out_ << std::chrono::steady_clock::now().time_since_epoch().count() << " thread " << thread
         << ' ' << what << ' ' << static_cast<std::int64_t>(id) << '\n';
  }
  std::mutex mutex_;
  std::ostream& out_;
};

}  // namespace trainscope::test
