// A timeline of training steps: what each thread did, from when to when.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/exec/execution_events.h"
#include "engine/train/step_events.h"

namespace trainscope::test {

class Timeline final : public ExecutionEvents, public StepEvents {
 public:
  struct Span {
    std::string_view what;
    std::int64_t id = 0;              // of the call, value or section; threads of a region
    std::int64_t begin = 0, end = 0;  // nanoseconds
  };
  explicit Timeline(int threads) : spans(static_cast<std::size_t>(threads)) {
    for (std::vector<Span>& list : spans) list.reserve(1 << 14);  // no allocation in between
  }
  std::vector<std::vector<Span>> spans;  // by thread, as they begin

  void batch_wait_begin(const StepPlace& at) override { begin(0, "batch wait", at.step); }
  void batch_wait_end(const StepPlace&, double) override { end(0); }
  void copy_begin(const CopyEvent& copy) override { begin(0, name_of(copy.kind), id(copy.value)); }
  void copy_end(const CopyEvent&) override { end(0); }
  void call_begin(const CallEvent& call) override { begin(call.thread, "call", id(call.call)); }
  void call_end(const CallEvent& call) override { end(call.thread); }
  void section_begin(std::size_t i) override { begin(0, "section", static_cast<int>(i)); }
  void section_end(std::size_t) override { end(0); }
  void region_begin(int threads) override { begin(0, "region", threads); }
  void region_end() override { end(0); }
  void thread_begin(int thread) override { begin(thread, "work", thread); }
  void thread_end(int thread) override { end(thread); }
  bool wants_threads() const override { return true; }

  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

 private:
  template <class Id>
  static std::int64_t id(Id id) {
    return static_cast<std::int64_t>(id);
  }
  void begin(int thread, std::string_view what, std::int64_t id) {
    std::vector<Span>& list = spans[static_cast<std::size_t>(thread)];
    list.push_back({.what = what, .id = id, .begin = now()});
  }
  void end(int thread) {  // of the last span that is open
    std::vector<Span>& list = spans[static_cast<std::size_t>(thread)];
    std::find_if(list.rbegin(), list.rend(), [](const Span& s) { return s.end == 0; })->end = now();
  }
};

}  // namespace trainscope::test
