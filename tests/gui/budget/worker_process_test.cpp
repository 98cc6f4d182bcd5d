// Workers: real ones that train on with every kind of plan, and others that behave badly.
#include "gui/budget/worker_process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "engine/bundle/plan_json.h"
#include "gui/budget/train_on.h"
#include "tests/gui/budget/budget_tools.h"

namespace trainscope::gui::test {
namespace {

using trainscope::test::places_of;
using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;
using trainscope::test::wait_until;
using Phase = WorkerState::Phase;

constexpr std::int64_t kSteps = 6;
const std::string kProgram = std::string(TRAINSCOPE_BIN_DIR) + "/trainscope";

bool ends(WorkerProcess& worker) {
  return wait_until([&] {
    worker.poll();
    return worker.state().has_ended();
  });
}

WorkerProcess train_on(const RunReader& run, const PlanRequest& request) {
  std::vector<std::string> words =
      train_words(run, request, write_pins(run, request), kSteps, new_run_folder(run, kSteps));
  words.insert(words.end(), {"--progress", "none", "-q"});
  return {kProgram, std::move(words)};
}

// A shell script in a worker's place; 3 is the socket.
WorkerProcess shell(const std::string& script) { return {"/bin/sh", {"-c", script}}; }

bool is_gone(std::int64_t process) {
  return wait_until([&] { return ::kill(static_cast<pid_t>(process), 0) != 0; });
}

const std::string kHello = "printf '{\"kind\":\"hello\",\"protocol\":1}\\n' >&3; ";

}  // namespace

TEST_SUITE_BEGIN("processes");

TEST_CASE("worker process: every plan uses the bytes it said, where it said, and trains the same") {
  const TemporaryFolder whole_folder;
  const RunReader whole = recorded_run(whole_folder, 4 + kSteps);
  const std::vector<StepRecord> expected = whole.metrics().steps;
  std::int64_t plain = 0;
  std::int64_t least = 0;
  {
    StepPlanner planner(planned_step(whole), {});
    plain = planner.front({}).front().arena_bytes;
    least = planner.front({}).back().arena_bytes;
  }
  const std::vector<PlanRequest> requests = {
      {.level = PlanLevel::kNone},
      {.level = PlanLevel::kLevel1},
      {.level = PlanLevel::kLevel2},
      {.level = PlanLevel::kAuto, .budget_bytes = (plain + least) / 2},
      {.level = PlanLevel::kAuto, .budget_bytes = least},
      {.level = PlanLevel::kAuto,
       .budget_bytes = least + (plain - least) * 3 / 4,
       .recompute = {"*Gelu*"}}};
  const TemporaryFolder folder;
  recorded_run(folder, 4);
  std::int64_t session = 1;
  for (const PlanRequest& request : requests) {
    CAPTURE(name_of(request.level));
    CAPTURE(request.budget_bytes);
    // Each from the same checkpoint: as if the others had not been.
    const TemporaryFolder copy;
    std::filesystem::copy(folder / "run", copy / "run", std::filesystem::copy_options::recursive);
    const RunReader run = RunReader::open(copy / "run");
    const StepPlanner planner(planned_step(run), {});
    const PlanOutcome plan = planner.plan(request, {});
    REQUIRE_MESSAGE(plan.record != nullptr, plan.fault);
    WorkerProcess worker = train_on(run, request);
    REQUIRE(ends(worker));
    const WorkerState& state = worker.state();
    INFO(state.fault);
    REQUIRE(state.phase == Phase::kFinished);
    REQUIRE(state.peak.has_value());
    CHECK(state.peak->predicted_bytes == view_of(*plan.record).arena().bytes);
    CHECK(state.peak->used_bytes == state.peak->predicted_bytes);
    REQUIRE(state.steps.size() == kSteps);
    for (std::size_t i = 0; i < state.steps.size(); ++i) {
      CHECK(state.steps[i].step == expected[4 + i].step);
      CHECK(state.steps[i].loss == expected[4 + i].loss);
    }
    CHECK(state.checkpoint_step == 4 + kSteps);
    const RunReader after = RunReader::open(copy / "run");
    CHECK(std::ssize(after.manifest().sessions) == session + 1);
    const StoredPlan stored = after.plan().value();
    CHECK(places_of(stored.view()) == places_of(view_of(*plan.record)));
    CHECK(plan_sizes(stored.view()) == plan_sizes(view_of(*plan.record)));
  }
}

TEST_CASE("worker process: another plan goes on from the one before, budgets and pins forgotten") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 2, {"--memory-budget", "110KB"});
  const PlanRequest pinned{.level = PlanLevel::kLevel1, .keep = {"*Gelu*"}};
  for (const PlanRequest& request :
       {pinned, PlanRequest{.level = PlanLevel::kNone}, PlanRequest{.level = PlanLevel::kLevel2}}) {
    const RunReader now = RunReader::open(folder / "run");
    const PlanOutcome plan = StepPlanner(planned_step(now), {}).plan(request, {});
    WorkerProcess worker = train_on(now, request);
    REQUIRE(ends(worker));
    REQUIRE_MESSAGE(worker.state().phase == Phase::kFinished, worker.state().fault);
    CHECK(worker.state().peak->used_bytes == view_of(*plan.record).arena().bytes);
  }
  CHECK(RunReader::open(folder / "run").manifest().sessions.size() == 4);
}

TEST_CASE("worker process: a stop ends it after the step, and the run goes on from there") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 2);
  WorkerProcess worker(kProgram, {"train", "--resume", (folder / "run").string(), "--steps",
                                  "1000000", "--progress", "none", "-q"});
  REQUIRE(wait_until([&] {
    worker.poll();
    return worker.state().steps.size() >= 3;
  }));
  worker.stop();
  CHECK(worker.state().phase == Phase::kStopping);
  REQUIRE(ends(worker));
  CHECK(worker.state().phase == Phase::kStopped);
  const std::int64_t last = worker.state().steps.back().step;
  CHECK(worker.state().checkpoint_step == last);
  CHECK(newest_checkpoint_step(run) == last);
  CHECK(RunReader::open(folder / "run").manifest().sessions.back().status ==
        RunStatus::kInterrupted);
}

TEST_CASE("worker process: killed it leaves one line, and a run to go on with") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 2);
  std::int64_t process = 0;
  {
    WorkerProcess worker(kProgram, {"train", "--resume", (folder / "run").string(), "--steps",
                                    "1000000", "--progress", "none", "-q"});
    REQUIRE(wait_until([&] {
      worker.poll();
      return worker.state().steps.size() >= 3;
    }));
    process = worker.state().process;
    REQUIRE(::kill(static_cast<pid_t>(process), SIGKILL) == 0);
    REQUIRE(ends(worker));
    CHECK(worker.state().phase == Phase::kFailed);
    CHECK(worker.state().fault.find("was ended by signal 9") != std::string::npos);
    CHECK(worker.state().fault.find('\n') == std::string::npos);
    CHECK(worker.state().hint.find("goes on from step 2: trainscope train --resume") !=
          std::string::npos);
    CHECK_FALSE(worker.poll());
  }
  CHECK(is_gone(process));  // not even as a zombie
  WorkerProcess again = train_on(run, {.level = PlanLevel::kNone});
  REQUIRE(ends(again));
  REQUIRE_MESSAGE(again.state().phase == Phase::kFinished, again.state().fault);
  CHECK(again.state().begin->from_step == 2);
}

TEST_CASE("worker process: an owner that goes away leaves a worker that saves and ends") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 2);
  std::int64_t process = 0;
  {
    WorkerProcess worker(kProgram, {"train", "--resume", (folder / "run").string(), "--steps",
                                    "1000000", "--progress", "none", "-q"});
    REQUIRE(wait_until([&] {
      worker.poll();
      return !worker.state().steps.empty();
    }));
    process = worker.state().process;
  }
  CHECK(is_gone(process));
  CHECK(newest_checkpoint_step(run) > 2);
  CHECK(RunReader::open(folder / "run").manifest().sessions.back().status ==
        RunStatus::kInterrupted);
}

TEST_CASE("worker process: what cannot train says why in one line") {
  const TemporaryFolder folder;
  recorded_run(folder, 2);
  struct Case {
    std::vector<std::string> words;
    std::string fault;
  };
  const std::string run = (folder / "run").string();
  const std::vector<Case> cases = {
      {{"train", "--resume", run, "--steps", "9", "--memory-budget", "1KB"}, "no plan was found"},
      {{"train", "--resume", run, "--steps", "9", "--lr", "0.5"}, "with other settings"},
      {{"train", "--resume", run, "--steps", "1"}, "beyond --steps 1"},
      {{"train", "--resume", "/nowhere", "--steps", "9"}, "no model or run"},
      {{"train", "--no-such-flag"}, "no-such-flag"},
      {{"no-such-verb"}, "no-such-verb"}};
  for (const Case& each : cases) {
    CAPTURE(each.fault);
    WorkerProcess worker(kProgram, each.words);
    REQUIRE(ends(worker));
    CHECK(worker.state().phase == Phase::kFailed);
    CHECK_MESSAGE(worker.state().fault.find(each.fault) != std::string::npos, worker.state().fault);
    CHECK(worker.state().fault.find('\n') == std::string::npos);
  }
}

TEST_CASE("worker process: a program that is not there") {
  WorkerProcess worker("/nowhere/trainscope", {"train"});
  CHECK(worker.state().phase == Phase::kFailed);
  CHECK(worker.state().fault.find("cannot be started: No such file") != std::string::npos);
  CHECK_FALSE(worker.poll());
  worker.stop();
  CHECK(worker.state().phase == Phase::kFailed);
}

TEST_CASE("worker process: what is no message ends the talk, not this process") {
  const std::string step =
      "printf '{\"kind\":\"step\",\"step\":1,\"loss\":1.5,\"milliseconds\":2}\\n' >&3; ";
  struct Case {
    std::string script;
    std::string fault;
  };
  const std::vector<Case> cases = {
      {"echo hello >&3; sleep 30", "no message of protocol 1"},
      {step + "sleep 30", "first message says hello"},
      {"printf '{\"kind\":\"hello\",\"protocol\":99}\\n' >&3; sleep 30", "speaks protocol 99"},
      {kHello + "printf '{\"kind\":\"step\",\"step\":\"x\"}\\n' >&3; sleep 30",
       "no message of protocol 1"},
      {kHello + "head -c 200000 /dev/zero >&3; sleep 30", "without an end"},
      {kHello + "printf '\\377\\376\\n' >&3; sleep 30", "no message of protocol 1"},
      {kHello + step + "exit 0", "ended with exit code 0 after step 1"},
      {kHello + "exit 7", "ended with exit code 7"},
      {"echo 'error: bad luck' >&2; echo more >&2; exit 3", "exit code 3: error: bad luck"},
      {kHello + "kill -SEGV $$", "was ended by signal 11"}};
  for (const Case& each : cases) {
    CAPTURE(each.script);
    WorkerProcess worker = shell(each.script);
    REQUIRE(ends(worker));
    CHECK(worker.state().phase == Phase::kFailed);
    CHECK_MESSAGE(worker.state().fault.find(each.fault) != std::string::npos, worker.state().fault);
    ::kill(static_cast<pid_t>(worker.state().process), SIGKILL);
  }
}

TEST_CASE("worker process: no poll waits, whatever the worker does") {
  WorkerProcess silent = shell("sleep 30");
  WorkerProcess loud =
      shell(kHello + "while :; do printf '{\"kind\":\"checkpoint\",\"step\":1}\\n'; done >&3");
  double longest_ms = 0.0;
  const auto has_news = [&] {
    const auto start = std::chrono::steady_clock::now();
    silent.poll();
    const bool is_new = loud.poll();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    longest_ms = std::max(longest_ms, taken.count());
    return is_new;
  };
  for (int i = 0; i < 50; ++i) REQUIRE(wait_until(has_news));
  CHECK(longest_ms < 1000.0);  // this thread may have to wait for a processor
  CHECK(loud.state().checkpoint_step == 1);
  CHECK(silent.state().phase == Phase::kStarting);
  ::kill(static_cast<pid_t>(silent.state().process), SIGKILL);
  ::kill(static_cast<pid_t>(loud.state().process), SIGKILL);
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
