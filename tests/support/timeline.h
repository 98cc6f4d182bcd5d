// A timeline of training steps: what each thread did, from when to when, and what of its time
// nothing names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "engine/exec/execution_events.h"
#include "engine/train/step_events.h"
#include "profiler/record/clock.h"

namespace trainscope::test {

class Timeline final : public ExecutionEvents, public StepEvents {
 public:
  struct Span {
    std::string_view what;
    std::int64_t id = 0;              // of the call, value or section; of a state the thread
    std::int64_t begin = 0, end = 0;  // now()
  };
  // Of one thread, as they begin. In cache lines of its own: each thread writes its own.
  struct alignas(64) Spans : std::vector<Span> {
    std::ptrdiff_t state = -1;      // the one of the state that the thread is in; -1: none
    std::vector<std::size_t> open;  // those that have begun and not ended, without states
  };
  explicit Timeline(int threads) : spans(static_cast<std::size_t>(threads)) {
    for (Spans& list : spans) {  // no allocation in between
      list.reserve(1 << 14);
      list.open.reserve(16);
    }
  }
  std::vector<Spans> spans;  // by thread

  void batch_wait_begin(const StepPlace& at) override { begin(0, "batch wait", at.step); }
  void batch_wait_end(const StepPlace&, double) override { end(0); }
  void inputs_begin(const StepPlace& at) override { begin(0, "inputs", at.step); }
  void inputs_end(const StepPlace&) override { end(0); }
  void results_begin(const StepPlace& at) override { begin(0, "results", at.step); }
  void results_end(const StepPlace&) override { end(0); }
  void copy_begin(const CopyEvent& copy) override { begin(0, name_of(copy.kind), id(copy.value)); }
  void copy_end(const CopyEvent&) override { end(0); }
  void call_begin(const CallEvent& call) override { begin(call.thread, "call", id(call.call)); }
  void call_end(const CallEvent& call) override { end(call.thread); }
  void section_begin(std::size_t i) override { begin(0, "section", static_cast<int>(i)); }
  void section_end(std::size_t) override { end(0); }
  // One moment ends a state and begins the next.
  void thread_state(int thread, ThreadState state) override {
    const std::int64_t time = now();
    Spans& list = spans[static_cast<std::size_t>(thread)];
    if (list.state >= 0) list[static_cast<std::size_t>(list.state)].end = time;
    list.state = -1;
    if (state == ThreadState::kCaller) return;
    list.state = std::ssize(list);
    list.push_back({.what = name_of(state), .id = thread, .begin = time});
  }
  // For the next step, in memory that has been touched before: a page's first use costs more than
  // most gaps.
  void clear() {
    for (Spans& list : spans) {
      list.clear();
      list.open.clear();
      list.state = -1;
    }
  }
  // What is still open ends, and work that is made of calls is that of a tile.
  void close() {
    for (Spans& list : spans) {
      for (Span& span : list) span.end = span.end == 0 ? now() : span.end;
      for (std::size_t i = 0; i + 1 < list.size(); ++i) {
        const Span& next = list[i + 1];
        const bool holds_calls = next.what == "call" && next.begin < list[i].end;
        if (list[i].what == "work" && holds_calls) list[i].what = "tile";
      }
    }
  }
  bool wants_threads() const override { return true; }

  // Ticks of the quickest clock there is: what reading it takes is time that nothing names.
  static std::int64_t now() {
    static const profiler::Clock clock;
    return static_cast<std::int64_t>(clock.ticks());
  }

 private:
  template <class Id>
  static std::int64_t id(Id id) {
    return static_cast<std::int64_t>(id);
  }
  // The clock is read first, and in end() last: what the timeline itself takes is within its spans.
  void begin(int thread, std::string_view what, std::int64_t id) {
    const std::int64_t time = now();
    Spans& list = spans[static_cast<std::size_t>(thread)];
    list.open.push_back(list.size());
    list.push_back({.what = what, .id = id, .begin = time});
  }
  void end(int thread) {  // of the last span that is open
    Spans& list = spans[static_cast<std::size_t>(thread)];
    Span& last = list[list.open.back()];
    list.open.pop_back();
    last.end = now();
  }
};

// Whether time that a span's children leave is named by it. What only holds others together says
// nothing of its own.
inline bool names_time(std::string_view what) { return what != "section" && what != "tile"; }

// A piece of a thread's time: the innermost span there, and the neighbours within the span around
// it, -1 where there is none.
struct TimelinePiece {
  int span = -1;    // that names the time; -1: none does
  int around = -1;  // where none does: the span around
  int before = -1;
  int after = -1;
  std::int64_t begin = 0, end = 0;
};

// All of [begin, end), in order, by the spans of one thread, which nest.
inline std::vector<TimelinePiece> pieces_of(const std::vector<Timeline::Span>& spans,
                                            std::int64_t begin, std::int64_t end) {
  std::vector<TimelinePiece> pieces;
  std::vector<int> open;
  std::int64_t at = begin;
  int last = -1;  // what ended last within open.back()
  const auto at_index = [&](int i) -> const Timeline::Span& {
    return spans[static_cast<std::size_t>(i)];
  };
  const auto piece_until = [&](std::int64_t until, int next) {
    if (until < begin) return;  // it is before all of this
    const std::int64_t time = std::min(until, end);
    const int around = open.empty() ? -1 : open.back();
    const bool named = around >= 0 && names_time(at_index(around).what);
    pieces.push_back({.span = named ? around : -1,
                      .around = around,
                      .before = last,
                      .after = next,
                      .begin = at,
                      .end = time});
    at = time;
  };
  const auto close_until = [&](std::int64_t time) {
    while (!open.empty() && at_index(open.back()).end <= time) {
      piece_until(at_index(open.back()).end, -1);
      last = open.back();
      open.pop_back();
    }
  };
  for (int i = 0; i < static_cast<int>(spans.size()); ++i) {
    close_until(at_index(i).begin);
    piece_until(at_index(i).begin, i);
    open.push_back(i);
    last = -1;
  }
  close_until(end);
  piece_until(end, -1);
  return pieces;
}

}  // namespace trainscope::test
