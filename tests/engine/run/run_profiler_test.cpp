// The profile of a run: which steps, what is in them, and that spans nest.
#include "engine/run/run_profiler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/folder.h"
#include "engine/run/training_run.h"
#include "engine/session.h"
#include "profiler/store/event_file.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

using profiler::Event;
using profiler::EventKind;

std::vector<Event> events_of(const MappedFile& file) {
  const profiler::EventReading reading = profiler::read_events(file.bytes());
  REQUIRE_MESSAGE(reading.message.empty(), reading.message);
  CHECK(reading.view.dropped == 0);
  CHECK(reading.view.torn_bytes == 0);
  std::vector<Event> events;
  for (const profiler::EventChunk& chunk : reading.view.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) events.push_back(chunk.event(i));
  }
  return events;
}

std::vector<Event> only(const std::vector<Event>& events, EventKind kind) {
  std::vector<Event> found;
  std::ranges::copy_if(events, std::back_inserter(found),
                       [&](const Event& event) { return event.kind == kind; });
  return found;
}

std::vector<std::uint32_t> ids_of(const std::vector<Event>& events, EventKind kind) {
  std::vector<std::uint32_t> ids;
  for (const Event& event : only(events, kind)) ids.push_back(event.id);
  return ids;
}

bool is_inside(const Event& inner, const Event& outer) {
  return outer.begin_ns <= inner.begin_ns && inner.end_ns() <= outer.end_ns();
}

// Of two spans of a thread one is inside the other, or they are apart.
void check_nesting(std::vector<Event> events) {
  std::erase_if(events, [](const Event& event) { return is_counter(event.kind); });
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (std::size_t k = i + 1; k < events.size(); ++k) {
      const Event& a = events[i];
      const Event& b = events[k];
      if (a.thread != b.thread) continue;
      const bool apart = a.end_ns() <= b.begin_ns || b.end_ns() <= a.begin_ns;
      CHECK_MESSAGE((apart || is_inside(a, b) || is_inside(b, a)), i, " and ", k);
    }
  }
}

TrainRequest profiled(const std::filesystem::path& folder, std::int64_t steps, ProfileSteps which) {
  TrainRequest request = points_request(folder, steps);
  request.profile = which;
  return request;
}

TEST_CASE("profile: the steps that were asked for, each with all that it does") {
  const ScratchFolder scratch;
  TrainRequest request = profiled(scratch.path / "run", 6, {.from = 3, .to = 5});
  request.compile.training.micro_batches = 2;
  request.compile.lower.threads = 2;
  request.evaluate_every = 4;
  RunListeners nobody;
  train(std::move(request), nobody);
  const RunReader run = RunReader::open(scratch.path / "run");
  const std::vector<Event> events = events_of(run.events().value());

  CHECK(ids_of(events, EventKind::kStep) == std::vector<std::uint32_t>{3, 4, 5});
  CHECK(ids_of(events, EventKind::kLoss) == std::vector<std::uint32_t>{3, 4, 5});
  CHECK(ids_of(events, EventKind::kEvaluation) == std::vector<std::uint32_t>{4});
  CHECK(ids_of(events, EventKind::kBatchWait) == std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1});
  CHECK(ids_of(events, EventKind::kStepPart) ==
        std::vector<std::uint32_t>{0, 0, 1, 0, 0, 1, 0, 0, 1});
  // Those of the step first; its results are told behind the update and at its end.
  CHECK(ids_of(events, EventKind::kInputs) ==
        std::vector<std::uint32_t>{0, 0, 1, 0, 0, 1, 0, 0, 1});
  CHECK(ids_of(events, EventKind::kResults) ==
        std::vector<std::uint32_t>{0, 1, 2, 2, 0, 1, 2, 2, 0, 1, 2, 2});
  // The machine is measured before the first step and behind the last one.
  // Where a step takes long, between them too.
  const std::vector<std::uint32_t> probes = ids_of(events, EventKind::kProbe);
  REQUIRE(probes.size() >= 2);
  CHECK(probes.front() == 3);
  CHECK(probes.back() == 5);
  for (const EventKind kind : {EventKind::kClockSpeed, EventKind::kExchangeSpeed}) {
    CHECK(ids_of(events, kind) == probes);
    for (const Event& event : only(events, kind)) CHECK(event.number() > 0.0);
  }
  for (const EventKind kind : {EventKind::kResidentBytes, EventKind::kTaskClock,
                               EventKind::kMinorFaults, EventKind::kVoluntarySwitches}) {
    CHECK(only(events, kind).size() == 3);
  }
  CHECK(only(events, EventKind::kBind).size() >= 12);  // two inputs of each micro-batch
  const std::vector<StepRecord> metrics = run.metrics().steps;
  for (const Event& loss : only(events, EventKind::kLoss)) {
    CHECK(loss.number() == metrics.at(loss.id - 1).loss);
  }
  check_nesting(events);

  // Each step has each call of the plan: twice before the update, once in it.
  const StoredPlan plan = run.plan().value();
  const PlanView view = plan.view();
  for (const Event& step : only(events, EventKind::kStep)) {
    std::map<std::uint32_t, int> counts;
    for (const Event& call : only(events, EventKind::kCall)) {
      if (is_inside(call, step)) ++counts[call.id];
    }
    REQUIRE(counts.size() == view.calls.size());
    for (const auto& [call, count] : counts) {
      CHECK_MESSAGE(count == (call < view.facts().update_call ? 2 : 1), call);
    }
  }
}

TEST_CASE("profile: steps again and again, and nothing of what is between them") {
  const ScratchFolder scratch;
  TrainRequest request =
      profiled(scratch.path / "run", 14, {.from = 2, .to = 3, .every = 5, .repeat = 2});
  request.compile.lower.threads = 2;
  request.evaluate_every = 5;  // step 5 is between both, 10 behind them
  RunListeners nobody;
  train(std::move(request), nobody);
  const RunReader run = RunReader::open(scratch.path / "run");
  const std::vector<Event> events = events_of(run.events().value());
  CHECK(ids_of(events, EventKind::kStep) == std::vector<std::uint32_t>{2, 3, 7, 8});
  CHECK(ids_of(events, EventKind::kLoss) == std::vector<std::uint32_t>{2, 3, 7, 8});
  CHECK(only(events, EventKind::kEvaluation).empty());
  CHECK(only(events, EventKind::kStepPart).size() == 8);
  CHECK(ids_of(events, EventKind::kProbe).front() == 2);
  CHECK(ids_of(events, EventKind::kProbe).back() == 8);
  check_nesting(events);
  // No span of any thread but for the machine's own measurement reaches into steps 4, 5 and 6; nor
  // is there a call that no profiled step has.
  const std::vector<Event> steps = only(events, EventKind::kStep);
  for (const Event& event : events) {
    if (is_counter(event.kind) || event.kind == EventKind::kProbe) continue;
    CHECK((event.end_ns() <= steps[2].begin_ns || event.begin_ns > steps[1].end_ns()));
    if (event.kind != EventKind::kCall) continue;
    CHECK(std::ranges::any_of(steps, [&](const Event& step) { return is_inside(event, step); }));
  }
  // The bytes that are bound are of the first step alone.
  for (const Event& bound : only(events, EventKind::kBoundBytes)) {
    CHECK(bound.begin_ns <= steps[0].end_ns());
  }
  // Idle threads are idle to the end of a window, and from the begin of the next one on.
  for (const std::size_t window : {0, 2}) {
    const auto idle = [&](std::int64_t ns) {
      return std::ranges::any_of(events, [&](const Event& event) {
        return event.thread == 1 && event.begin_ns <= ns && ns <= event.end_ns();
      });
    };
    CHECK(idle(steps[window].begin_ns));
    CHECK(idle(steps[window + 1].end_ns()));
  }
}

TEST_CASE("profile: which steps are of it") {
  const auto of = [](const ProfileSteps& which) {
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 1; step <= 14; ++step) {
      if (which.has(step)) steps.push_back(step);
    }
    return steps;
  };
  CHECK(of({.from = 3, .to = 5}) == std::vector<std::int64_t>{3, 4, 5});
  CHECK(of({.from = 2, .to = 3, .every = 5}) == std::vector<std::int64_t>{2, 3, 7, 8, 12, 13});
  CHECK(of({.from = 2, .to = 3, .every = 5, .repeat = 2}) == std::vector<std::int64_t>{2, 3, 7, 8});
  CHECK(ProfileSteps{.from = 2, .to = 3, .every = 5, .repeat = 2}.last() == 8);
  CHECK(of({.from = 13, .to = 14, .every = 2}) == std::vector<std::int64_t>{13, 14});
}

TEST_CASE("profile: which clock it has is said, and what another one costs") {
  const ScratchFolder scratch;
  const TrainRequest request = points_request(scratch.path / "run", 1);
  Session session(request.model, request.compile);
  for (const profiler::TickSource clock :
       {profiler::TickSource::kTimeStampCounter, profiler::TickSource::kMonotonicClock}) {
    const bool is_counter = clock == profiler::TickSource::kTimeStampCounter;
    if (is_counter && profiler::best_tick_source() != clock) continue;  // this machine has none
    std::string said;
    const auto log = std::make_shared<Logger>(LogOptions{
        .stream = nullptr, .sink = [&said](LogLevel /*level*/, std::string_view message) {
          said += std::string(message) + "\n";
        }});
    const std::filesystem::path file = scratch.path / (is_counter ? "counter" : "clock");
    RunProfiler recording({}, session.shared_executor(), entry_of(file), log, clock);
    recording.step_begin(1);
    const std::string_view line =
        is_counter
            ? "profile: times are of the processor's time stamp counter\n"
            : "profile: times are of the system's monotonic clock, since the processor's time "
              "stamp counter does not run at one rate or is not there: a span takes twice as "
              "long to record\n";
    CHECK_MESSAGE(said.find(line) != std::string::npos, said);
    CHECK(said.find("times are of") == said.rfind("times are of"));
    recording.step_end({.step = 1}, 0);
    recording.session_end({});
    const MappedFile written = MappedFile::open(file);
    const profiler::EventReading reading = profiler::read_events(written.bytes());
    CHECK(reading.view.facts.tick_source == static_cast<std::uint32_t>(clock));
  }
}

TEST_CASE("profile: the bytes that the first step had bound are those of the plan, time by time") {
  for (const int micro_batches : {1, 3}) {
    CAPTURE(micro_batches);
    const ScratchFolder scratch;
    TrainRequest request = profiled(scratch.path / "run", 6, {.from = 2, .to = 4});
    request.compile.training.micro_batches = micro_batches;
    RunListeners nobody;
    train(std::move(request), nobody);
    const RunReader run = RunReader::open(scratch.path / "run");
    const std::vector<Event> events = events_of(run.events().value());
    const std::vector<Event> counted = only(events, EventKind::kBoundBytes);
    REQUIRE_FALSE(counted.empty());
    const Event first = only(events, EventKind::kStep).front();
    CHECK(first.id == 2);
    const StoredPlan plan = run.plan().value();
    const std::vector<std::int64_t> planned = live_bytes(plan.view());
    std::map<std::uint32_t, std::int64_t> bound;  // by time, where it changed
    for (const Event& each : counted) {
      CHECK(each.begin_ns <= first.end_ns());  // in no later step
      bound[each.id] = std::llround(each.number());
    }
    for (std::uint32_t time = 0; time < planned.size(); ++time) {
      const auto after = bound.upper_bound(time);
      REQUIRE(after != bound.begin());
      CHECK_MESSAGE(std::prev(after)->second == planned[time], time);
    }
  }
}

struct Lines final : RunEvents {
  std::string all;
  void log(LogLevel /*level*/, std::string_view message) override {
    all += message;
    all += '\n';
  }
};

// tests/cuda/trace has a device that something traces.
TEST_CASE(
    "profile: of a device that computes by itself, and that nothing traces, the host's part") {
  const ScratchFolder scratch;
  Lines lines;
  TrainRequest request = profiled(scratch.path / "run", 3, {.from = 2, .to = 3});
  request.compile.device = std::make_shared<CopyingDevice>(
      CopyingOptions{.timing = Timing::kTransfersLate, .threads = false});
  train(request, lines);
  CHECK(lines.all.find("is not recorded, only what the host does: ") != std::string::npos);
  CHECK(lines.all.find("has nothing that records its work") != std::string::npos);
  const std::vector<Event> events =
      events_of(RunReader::open(scratch.path / "run").events().value());
  CHECK(ids_of(events, EventKind::kStep) == std::vector<std::uint32_t>{2, 3});
  CHECK(ids_of(events, EventKind::kStepPart) == std::vector<std::uint32_t>{0, 1, 0, 1});
  CHECK(only(events, EventKind::kBind).size() >= 4);
  CHECK(only(events, EventKind::kCall).empty());
  CHECK(only(events, EventKind::kTraceLevel).empty());
  CHECK_FALSE(only(events, EventKind::kClockSpeed).empty());
  check_nesting(events);
}

TEST_CASE("profile: nothing is there where it was not asked for, or where no such step was made") {
  const ScratchFolder scratch;
  RunListeners nobody;
  train(points_request(scratch.path / "plain", 3), nobody);
  CHECK(!RunReader::open(scratch.path / "plain").events().has_value());

  Lines lines;
  train(profiled(scratch.path / "late", 3, {.from = 10, .to = 12}), lines);
  CHECK(!RunReader::open(scratch.path / "late").events().has_value());
  CHECK(lines.all.find("none of the steps 10 to 12") != std::string::npos);
}

TEST_CASE("profile: each session has its own, and may count its own steps") {
  const ScratchFolder scratch;
  RunListeners nobody;
  train(profiled(scratch.path / "run", 4, {.from = 2, .to = 2}), nobody);
  TrainRequest more = profiled(scratch.path / "run", 8, {.from = 2, .to = 3, .of_session = true});
  more.resume = "auto";
  train(std::move(more), nobody);
  const RunReader run = RunReader::open(scratch.path / "run");
  CHECK(ids_of(events_of(run.events(1).value()), EventKind::kStep) ==
        std::vector<std::uint32_t>{2});
  CHECK(ids_of(events_of(run.events().value()), EventKind::kStep) ==
        std::vector<std::uint32_t>{6, 7});
  TrainRequest plain = points_request(scratch.path / "run", 9);
  plain.resume = "auto";
  train(std::move(plain), nobody);
  CHECK(!RunReader::open(scratch.path / "run").events().has_value());
  CHECK(RunReader::open(scratch.path / "run").events(2).has_value());
}

struct GivesUp final : RunEvents {
  void step_end(const StepRecord& step, std::int64_t /*used_bytes*/) override {
    if (step.step == 3) fail(ErrorCode::kRunFailed, "a listener gives up");
  }
};

TEST_CASE("profile: a session that fails leaves the steps that it finished") {
  const ScratchFolder scratch;
  GivesUp listener;
  CHECK_THROWS_AS(train(profiled(scratch.path / "run", 9, {.from = 2, .to = 8}), listener), Error);
  const RunReader run = RunReader::open(scratch.path / "run");
  CHECK(ids_of(events_of(run.events().value()), EventKind::kStep) ==
        std::vector<std::uint32_t>{2, 3});
}

}  // namespace
}  // namespace trainscope::test
