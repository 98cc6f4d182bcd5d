// The recorder: nesting, several threads at once, bounded memory.
#include "profiler/record/recorder.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace trainscope::profiler {
namespace {

std::vector<Event> drained(Recorder& recorder) {
  std::vector<Event> events;
  recorder.drain([&](std::span<const Event> piece) {
    events.insert(events.end(), piece.begin(), piece.end());
  });
  return events;
}

TEST_CASE("recorder: spans nest, and come as they end") {
  Recorder recorder(2);
  recorder.begin(0, EventKind::kStep, 7);
  recorder.begin(0, EventKind::kCall, 3);
  recorder.end(0);
  recorder.count(EventKind::kLoss, 7, -2.5);
  recorder.begin(1, EventKind::kWork, 1);
  recorder.end(1);
  recorder.end(0);
  recorder.end(0);  // nothing is open
  const std::vector<Event> events = drained(recorder);
  REQUIRE(events.size() == 4);
  const Event& call = events[0];
  const Event& step = events[2];
  CHECK(call.kind == EventKind::kCall);
  CHECK(call.id == 3);
  CHECK(events[1].kind == EventKind::kLoss);
  CHECK(events[1].number() == -2.5);
  CHECK(step.kind == EventKind::kStep);
  CHECK(step.id == 7);
  CHECK(step.begin_ns >= 0);
  CHECK(step.begin_ns <= call.begin_ns);
  CHECK(call.end_ns() <= step.end_ns());
  CHECK(events[3].thread == 1);
  CHECK(drained(recorder).empty());
  CHECK(recorder.dropped() == 0);
}

TEST_CASE("recorder: one moment ends a span and begins the next") {
  Recorder recorder(1);
  recorder.begin(0, EventKind::kCall, 3);
  recorder.end_and_begin(0, EventKind::kIdle, 0);
  for (std::uint32_t i = 1; i <= 100; ++i) {
    recorder.end_and_begin(0, i % 2 == 0 ? EventKind::kIdle : EventKind::kWork, i);
  }
  recorder.end(0);
  recorder.end_and_begin(1, EventKind::kIdle, 0);  // there is no such lane
  const std::vector<Event> events = drained(recorder);
  REQUIRE(events.size() == 102);
  CHECK(events[0].kind == EventKind::kCall);
  CHECK(events[2].kind == EventKind::kWork);
  for (std::size_t i = 1; i < events.size(); ++i) {
    CHECK(events[i].begin_ns == events[i - 1].end_ns());
    CHECK(events[i].id == i - 1);
  }
}

TEST_CASE("recorder: a full lane keeps what it has, and counts what it leaves out") {
  Recorder recorder(1, 8);
  for (std::uint32_t i = 0; i < 11; ++i) {
    recorder.begin(0, EventKind::kCall, i);
    recorder.end(0);
  }
  CHECK(recorder.waiting() == 8);
  CHECK(recorder.dropped() == 3);
  const std::vector<Event> events = drained(recorder);
  REQUIRE(events.size() == 8);
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(events[i].id == i);
  recorder.begin(0, EventKind::kCall, 50);
  recorder.end(0);
  CHECK(drained(recorder).at(0).id == 50);
}

TEST_CASE("recorder: what is deeper than there is room for is counted, the rest stays whole") {
  Recorder recorder(1);
  for (std::uint32_t i = 0; i < 40; ++i) recorder.begin(0, EventKind::kCall, i);
  for (int i = 0; i < 40; ++i) recorder.end(0);
  const std::vector<Event> events = drained(recorder);
  CHECK(events.size() == 32);
  CHECK(events.back().id == 0);
  CHECK(recorder.dropped() == 8);
}

TEST_CASE("recorder: lanes that there are not, and spans that are forgotten, leave nothing") {
  Recorder recorder(1);
  recorder.begin(5, EventKind::kWork, 5);
  recorder.end(5);
  recorder.begin(0, EventKind::kStep, 1);
  recorder.forget_open();
  recorder.end(0);
  CHECK(drained(recorder).empty());
}

TEST_CASE("recorder: threads record while another takes, and nothing is lost or doubled") {
  constexpr std::uint32_t kEvents = 50'000;
  Recorder recorder(3);
  std::atomic<int> running = 2;
  std::vector<std::thread> threads;
  for (int lane = 1; lane <= 2; ++lane) {
    threads.emplace_back([&, lane] {
      for (std::uint32_t i = 0; i < kEvents; ++i) {
        recorder.begin(lane, EventKind::kWork, i);
        recorder.end(lane);
      }
      --running;
    });
  }
  std::vector<Event> events;
  const auto take = [&](std::span<const Event> piece) {
    events.insert(events.end(), piece.begin(), piece.end());
  };
  while (running > 0) recorder.drain(take);
  for (std::thread& thread : threads) thread.join();
  recorder.drain(take);
  CHECK(events.size() + recorder.dropped() == 2 * kEvents);
  std::set<std::pair<int, std::uint32_t>> seen;
  for (const Event& event : events) seen.insert({event.thread, event.id});
  CHECK(seen.size() == events.size());
}

}  // namespace
}  // namespace trainscope::profiler
