// What listeners hear, in which order, and several of them.
#include "engine/run/run_events.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "engine/run/training_run.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

// Every event as a word. Log lines and compilation have tests of their own.
struct Heard : RunEvents {
  std::vector<std::string> events;
  double waited_ms = 0.0;
  std::vector<std::string> lines;

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    events.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  void session_opening() override { add("opening"); }
  void session_begin(const SessionFacts& facts) override {
    add("begin {} of {}", facts.from_step, facts.total_steps);
  }
  void step_begin(std::int64_t step) override { add("step {}", step); }
  void batch_wait_begin(const StepPlace& at) override {
    add("wait {}.{}", at.step, at.micro_batch);
  }
  void batch_wait_end(const StepPlace& /*at*/, double milliseconds) override {
    waited_ms += milliseconds;
    add("waited");
  }
  void inputs_begin(const StepPlace& /*at*/) override { add("inputs"); }
  void inputs_end(const StepPlace& /*at*/) override { add("bound"); }
  void results_begin(const StepPlace& /*at*/) override { add("results"); }
  void results_end(const StepPlace& /*at*/) override { add("read"); }
  void step_part_begin(StepPart part, const StepPlace& /*at*/) override {
    add("{}", part == StepPart::kUpdate ? "update" : "micro-step");
  }
  void step_part_end(StepPart /*part*/, const StepPlace& /*at*/) override { add("done"); }
  void step_end(const StepRecord& step, std::int64_t /*used_bytes*/) override {
    add("end {}", step.step);
  }
  void steps_end() override { add("no more steps"); }
  void evaluation_begin(std::int64_t step) override { add("evaluate {}", step); }
  void evaluation_end(const EvaluationRecord& evaluation) override {
    add("evaluated {}", evaluation.step);
  }
  void evaluation_stopped(std::int64_t step) override { add("not evaluated {}", step); }
  void checkpoint_begin(std::int64_t step) override { add("save {}", step); }
  void checkpoint_end(std::int64_t step, const std::filesystem::path& /*folder*/) override {
    add("saved {}", step);
  }
  void best_checkpoint(const BestCheckpoint& best) override { add("best {}", best.step); }
  void progress(const Progress& moment) override {
    if (moment.work == "training") add("{}/{}", moment.done, moment.total);
  }
  void log(LogLevel level, std::string_view message) override {
    lines.push_back(fmt::format("{}: {}", name_of(level), message));
  }
  void session_end(RunStatus status) override { add("{}", name_of(status)); }
  void session_failed(const Error& /*error*/) override { add("failed"); }
};

// The last `count` of what was heard.
std::vector<std::string> last_of(const std::vector<std::string>& events, std::ptrdiff_t count) {
  return {events.end() - std::min(count, std::ssize(events)), events.end()};
}

}  // namespace

TEST_CASE("run events: several listeners hear the same, in the order of what happens") {
  const ScratchFolder folder;
  const auto first = std::make_shared<Heard>();
  const auto second = std::make_shared<Heard>();
  TrainRequest request = points_request(folder.path / "run", 2);
  request.compile.training.micro_batches = 2;
  request.evaluate_every = 1;
  TrainingRun(std::move(request), std::make_shared<RunListeners>(
                                      std::vector<std::shared_ptr<RunEvents>>{first, second}))
      .run();
  std::vector<std::string> expected = {"opening", "begin 0 of 2"};
  const auto add = [&expected](std::initializer_list<std::string> more) {
    expected.insert(expected.end(), more);
  };
  for (const std::string step : {"1", "2"}) {
    add({"step " + step, "inputs", "bound"});
    for (const char* micro_batch : {".0", ".1"}) {
      add({"wait " + step + micro_batch, "waited", "micro-step", "inputs", "bound", "results",
           "read", "done"});
    }
    add({"update", "results", "read", "done", "results", "read", "end " + step, step + "/2"});
    if (step == "2") add({"no more steps"});
    add({"evaluate " + step, "evaluated " + step, "save " + step, "saved " + step, "best " + step});
  }
  add({"finished"});
  CHECK(first->events == expected);
  CHECK(first->events == second->events);
  CHECK(first->lines == second->lines);
}

TEST_CASE("run events: who wants phases hears them within the parts of a step") {
  const ScratchFolder folder;
  struct HearsPhases final : Heard {
    void phase_begin(Phase phase) override { add("{}", name_of(phase)); }
    void phase_end(Phase phase) override { add("{} ends", name_of(phase)); }
    bool wants_phases() const override { return true; }
  };
  const auto phases = std::make_shared<HearsPhases>();
  const auto plain = std::make_shared<Heard>();
  TrainRequest request = points_request(folder.path / "run", 1);
  request.compile.training.micro_batches = 2;
  TrainingRun(std::move(request), std::make_shared<RunListeners>(
                                      std::vector<std::shared_ptr<RunEvents>>{phases, plain}))
      .run();
  const auto step = std::ranges::find(phases->events, "step 1");
  const auto end = std::ranges::find(phases->events, "end 1");
  const std::vector<std::string> micro_step = {
      "micro-step", "inputs",        "bound",   "forward", "forward ends",
      "backward",   "backward ends", "results", "read",    "done"};
  std::vector<std::string> expected = {"step 1", "inputs", "bound"};
  for (const char* wait : {"wait 1.0", "wait 1.1"}) {
    expected.insert(expected.end(), {wait, "waited"});
    expected.insert(expected.end(), micro_step.begin(), micro_step.end());
  }
  expected.insert(expected.end(), {"update", "update", "update ends", "results", "read", "done",
                                   "results", "read"});
  CHECK(std::vector<std::string>(step, end) == expected);
  std::erase_if(phases->events, [](const std::string& each) {
    return each.starts_with("forward") || each.starts_with("backward") || each == "update ends";
  });
  CHECK(phases->events.size() == plain->events.size() + 1);  // "update", the phase
}

TEST_CASE("run events: of an evaluation that is stopped no end is told, but the stop") {
  const ScratchFolder folder;
  struct StopsEvaluation final : Heard {
    std::stop_source source;
    void evaluation_begin(std::int64_t step) override {
      Heard::evaluation_begin(step);
      source.request_stop();
    }
  } heard;
  TrainRequest request = points_request(folder.path / "run", 3);
  request.evaluate_every = 1;
  train(std::move(request), heard, heard.source.get_token());
  CHECK(last_of(heard.events, 7) == std::vector<std::string>{"1/3", "evaluate 1", "not evaluated 1",
                                                             "no more steps", "save 1", "saved 1",
                                                             "interrupted"});
}

TEST_CASE("run events: a failure is told of, also without a record and where none can be ended") {
  const ScratchFolder folder;
  SUBCASE("the run's folder cannot be made") {
    write_file_atomic(folder.path / "file", std::string_view());
    Heard heard;
    CHECK_THROWS_AS(train(points_request(folder.path / "file" / "run", 1), heard), Error);
    CHECK(heard.events == std::vector<std::string>{"opening", "failed"});
  }
  SUBCASE("the run's folder is gone") {
    struct Removes final : Heard {
      std::filesystem::path run;
      void evaluation_begin(std::int64_t step) override {
        Heard::evaluation_begin(step);
        std::filesystem::remove_all(run);
        throw Error(ErrorCode::kIo, "the folder is gone");
      }
    } heard;
    heard.run = folder.path / "run";
    CHECK_THROWS_WITH_AS(train(points_request(heard.run, 1), heard), "the folder is gone", Error);
    CHECK(last_of(heard.events, 2) == std::vector<std::string>{"evaluate 1", "failed"});
  }
}

TEST_CASE("run events: a batch wait is the time that the data took") {
  const ScratchFolder folder;
  Heard heard;
  TrainRequest request = points_request(folder.path / "run", 3);
  request.open_data = opened(std::make_shared<const Points>(std::chrono::milliseconds(20)));
  train(std::move(request), heard);
  CHECK(heard.waited_ms >= 60.0);
}

TEST_CASE("run events: listeners get the lines of the log file") {
  const ScratchFolder folder;
  Heard heard;
  const TrainingResult result = train(points_request(folder.path / "run", 1), heard);
  const std::string file = read_file(result.folder / "log.jsonl", 1 << 20);
  REQUIRE(heard.lines.size() > 3);
  for (const std::string& line : heard.lines) {
    const std::string message = line.substr(line.find(": ") + 2);
    CHECK_MESSAGE(contains(file, Json(message).dump()), line);
  }
  CHECK(contains(heard.lines.back(), "step 1: saved a checkpoint"));
}

TEST_CASE("run events: compilation tells of every pass, then of order and placement") {
  const ScratchFolder folder;
  struct Moments final : RunEvents {
    std::vector<std::string> passes;
    std::vector<std::string> works;
    std::int64_t total = 0;
    void progress(const Progress& moment) override {
      if (works.empty() || works.back() != moment.work) works.emplace_back(moment.work);
      if (moment.work != "passes") return;
      CHECK(moment.done == std::ssize(passes));
      total = moment.total;
      passes.emplace_back(moment.now);
    }
  };
  const auto moments = std::make_shared<Moments>();
  const TrainingRun run(points_request(folder.path / "run", 1), moments);
  std::vector<std::string> names;
  for (const Pass& pass : default_passes()) names.emplace_back(pass.name);
  CHECK(moments->passes == names);
  CHECK(moments->total == std::ssize(names));
  CHECK(moments->works == std::vector<std::string>{"passes", "placement", "order"});
}

}  // namespace trainscope::test
