// The driver: a run without the command line, stopped, gone on with, and failing.
#include "engine/run/training_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/file.h"
#include "engine/exec/backends.h"
#include "profiler/numerics/trace.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

struct StepCounter final : RunEvents {
  int steps = 0;
  std::shared_ptr<const Compiled> compiled;
  void session_begin(const SessionFacts& facts) override { compiled = facts.compiled; }
  void step_end(const StepRecord& /*step*/, std::int64_t /*used_bytes*/) override { ++steps; }
};

// How often each call of a step ran.
struct CallCounter final : ExecutionEvents {
  std::map<CallId, int> calls;
  void call_end(const CallEvent& event) override { ++calls[event.call]; }
};

// Asks to stop at the end of a step, or as a step's evaluation begins.
struct StopAt final : RunEvents {
  std::stop_source source;
  std::int64_t step = -1;
  std::int64_t evaluation = -1;
  int evaluated = 0;

  void step_end(const StepRecord& record, std::int64_t /*used_bytes*/) override {
    if (record.step == step) source.request_stop();
  }
  void evaluation_begin(std::int64_t at) override {
    if (at == evaluation) source.request_stop();
  }
  void evaluation_end(const EvaluationRecord& /*record*/) override { ++evaluated; }
};

RunReader run_in(const fs::path& folder) { return RunReader::open(folder); }

const RunSession& last_session(const RunReader& run) { return run.manifest().sessions.back(); }

bool has_checkpoint(const fs::path& run, std::int64_t step) {
  return path_exists(run / kRunCheckpointsFolder / checkpoint_name(step) / "manifest.json");
}

std::string bytes_of(const fs::path& file) { return read_file(file, std::uint64_t{1} << 24); }

}  // namespace

// What another program has to do to train.
TEST_CASE("train: from a model to a recorded run in thirty lines") {
  const ScratchFolder folder;
  TrainRequest request{.model = model("(float[n,3] x) => (float[n,2] y)"
                                      "<float[3,2] w = {1, 0, 0, 1, 0.5, 0.5}> "
                                      "{ y = MatMul(x, w) }")};
  request.compile.device = test_device();
  request.compile.import.dims["n"] = 4;
  request.compile.training.loss = {.kind = LossKind::kMse, .output = "y"};
  request.compile.training.optimizer.kind = OptimizerKind::kSgd;
  request.open_data = opened(std::make_shared<const Points>());
  request.batch = 4;
  request.steps = 200;
  request.schedule.learning_rate = 0.1;
  request.run_folder = folder.path / "run";
  StepCounter counter;
  const auto calls = std::make_shared<CallCounter>();
  request.execution_events = {calls};

  const TrainingResult result = train(std::move(request), counter);

  CHECK(counter.steps == 200);
  CHECK(calls->calls.size() == counter.compiled->program.calls.size());
  CHECK(std::ranges::all_of(calls->calls, [](const auto& call) { return call.second == 200; }));
  CHECK(result.status == RunStatus::kFinished);
  CHECK(result.exit_code == 0);
  CHECK(result.step == 200);
  CHECK(result.samples_seen == 800);
  CHECK(result.last->loss < 1e-4 * result.first->loss);
  CHECK(result.validation->loss < 1e-4);
  CHECK(result.validation->examples == 10);
  CHECK(result.used_bytes == result.predicted_bytes);
  CHECK(OnnxModel::read(result.model).node_count() == 1);
  CHECK(run_in(result.folder).metrics().steps.size() == 200);
  CHECK(last_session(run_in(result.folder)).status == RunStatus::kFinished);
}

TEST_CASE("training run: its trace names the device that ran it") {
  const auto traced_on = [](DeviceHandle device) {
    const ScratchFolder folder;
    TrainRequest request = points_request(folder.path / "run", 1);
    request.compile.device = std::move(device);
    request.numerics = NumericsRequest{.oracle = false};
    StepCounter counter;
    train(std::move(request), counter);
    return profiler::Trace::open(folder.path / "run/numerics").header().more;
  };
  const Json cpu = traced_on(cpu_device());
  CHECK(cpu.get<std::string>("device") == "cpu");
  CHECK(cpu.find("isa") != nullptr);
  const Json copying = traced_on(std::make_shared<CopyingDevice>());
  CHECK(copying.get<std::string>("device") == "copying");
  CHECK(copying.find("isa") == nullptr);
}

TEST_CASE("training run: a stop ends it after the step, with a checkpoint and a model") {
  const ScratchFolder folder;
  const auto stop = std::make_shared<StopAt>();
  stop->step = 10;
  TrainRequest request = points_request(folder.path / "run", 30);
  request.stop_exit_code = [] { return 143; };
  TrainingRun run(std::move(request), stop, stop->source.get_token());
  const TrainingResult result = run.run();
  CHECK(result.status == RunStatus::kInterrupted);
  CHECK(result.exit_code == 143);
  CHECK(result.step == 10);
  CHECK(has_checkpoint(result.folder, 10));
  CHECK(path_exists(result.model));
  CHECK_FALSE(result.validation.has_value());
  const RunReader record = run_in(result.folder);
  CHECK(last_session(record).status == RunStatus::kInterrupted);
  CHECK(last_session(record).exit_code == 143);
  CHECK(last_session(record).last_step == 10);
}

TEST_CASE("training run: stopped before its first step it has trained nothing") {
  const ScratchFolder folder;
  struct StopAsItBegins final : RunEvents {
    std::stop_source source;
    void session_opening() override { source.request_stop(); }
  };
  const auto stop = std::make_shared<StopAsItBegins>();
  TrainingRun run(points_request(folder.path / "run", 5), stop, stop->source.get_token());
  const TrainingResult result = run.run();
  CHECK(result.exit_code == 130);
  CHECK(result.step == 0);
  CHECK(result.model.empty());
  CHECK_FALSE(has_checkpoint(result.folder, 0));
  CHECK(last_session(run_in(result.folder)).status == RunStatus::kInterrupted);
}

TEST_CASE("training run: stopped and gone on with it computes the same bits") {
  const ScratchFolder folder;
  RunEvents nobody;
  const TrainingResult whole = train(points_request(folder.path / "whole", 30), nobody);
  const auto stop = std::make_shared<StopAt>();
  stop->step = 13;
  TrainingRun(points_request(folder.path / "parts", 30), stop, stop->source.get_token()).run();
  TrainRequest again = points_request(folder.path / "parts", 30);
  again.resume = "auto";
  const TrainingResult rest = train(std::move(again), nobody);
  CHECK(rest.from_step == 13);
  CHECK(rest.status == RunStatus::kFinished);
  const std::vector<StepRecord> a = run_in(whole.folder).metrics().steps;
  const std::vector<StepRecord> b = run_in(rest.folder).metrics().steps;
  REQUIRE(a.size() == 30);
  REQUIRE(b.size() == 30);
  for (std::size_t i = 0; i < 30; ++i) CHECK(a[i].loss == b[i].loss);
  CHECK(whole.validation->loss == rest.validation->loss);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const fs::path of_step = fs::path(kRunCheckpointsFolder) / checkpoint_name(30) / file;
    CHECK(bytes_of(whole.folder / of_step) == bytes_of(rest.folder / of_step));
  }
  CHECK(bytes_of(whole.model) == bytes_of(rest.model));
}

TEST_CASE("training run: from given parameters and states it computes the bits of who had them") {
  const ScratchFolder folder;
  RunEvents nobody;
  const auto stop = std::make_shared<StopAt>();
  stop->step = 13;
  TrainingRun(points_request(folder.path / "first", 30), stop, stop->source.get_token()).run();
  const Checkpoint then =
      load_checkpoint(folder.path / "first" / kRunCheckpointsFolder / checkpoint_name(13));
  GivenStart start{.step = 13};
  for (const char* file : {"model", "optimizer"}) {
    for (const std::string& name : then.file(file).names()) {
      // As another engine may have them: in another shape and type.
      Tensor tensor = convert(then.file(file).tensor(name), DType::kF64);
      const std::int64_t elements = tensor.elements();
      start.tensors.emplace(name, std::move(tensor).reshaped(Shape{elements}));
    }
  }
  REQUIRE(start.tensors.size() == 2);
  TrainRequest again = points_request(folder.path / "again", 30);
  again.start = start;
  const TrainingResult rest = train(std::move(again), nobody);
  CHECK(rest.from_step == 13);
  CHECK(last_session(run_in(rest.folder)).from_step == 13);
  const TrainingResult whole = train(points_request(folder.path / "whole", 30), nobody);
  const std::vector<StepRecord> a = run_in(whole.folder).metrics().steps;
  const std::vector<StepRecord> b = run_in(rest.folder).metrics().steps;
  REQUIRE(b.size() == 17);
  for (std::size_t i = 0; i < b.size(); ++i) {
    CHECK(a[i + 13].step == b[i].step);
    CHECK(a[i + 13].loss == b[i].loss);
  }
  TrainRequest lacking = points_request(folder.path / "lacking", 30);
  start.tensors.erase("w");
  lacking.start = start;
  CHECK_THROWS_WITH_AS(train(std::move(lacking), nobody),
                       "step 14 cannot begin: elements are missing of w", Error);
}

TEST_CASE("training run: with another schedule it does not go on") {
  const ScratchFolder folder;
  RunEvents nobody;
  train(points_request(folder.path / "run", 3), nobody);
  TrainRequest other = points_request(folder.path / "run", 5);
  other.resume = "auto";
  other.schedule.learning_rate = 0.2;
  const std::optional<Error> error = error_of([&] { train(other, nobody); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(contains(refusal_of([&] { train(other, nobody); }), "learning_rate was 0.1, is 0.2"));
  CHECK(run_in(folder.path / "run").manifest().sessions.size() == 1);
}

TEST_CASE("training run: checkpoints as the policy says, the best one besides") {
  const ScratchFolder folder;
  struct Saved final : RunEvents {
    std::vector<std::int64_t> steps;
    std::vector<std::int64_t> best;
    void checkpoint_end(std::int64_t step, const fs::path& at) override {
      CHECK(path_exists(at / "manifest.json"));
      steps.push_back(step);
    }
    void best_checkpoint(const BestCheckpoint& checkpoint) override {
      best.push_back(checkpoint.step);
    }
  };
  Saved saved;
  TrainRequest request = points_request(folder.path / "run", 20);
  request.save_every = 4;
  request.keep = 2;
  request.evaluate_every = 10;
  const TrainingResult result = train(std::move(request), saved);
  CHECK(saved.steps == std::vector<std::int64_t>{4, 8, 10, 12, 16, 20});
  CHECK(saved.best == std::vector<std::int64_t>{10, 20});
  CHECK(result.best->step == 20);
  CHECK(has_checkpoint(result.folder, 16));
  CHECK(has_checkpoint(result.folder, 20));
  CHECK_FALSE(has_checkpoint(result.folder, 8));
}

TEST_CASE("training run: a stop while it evaluates ends the session without the evaluation") {
  const ScratchFolder folder;
  const auto stop = std::make_shared<StopAt>();
  stop->evaluation = 5;
  TrainRequest request = points_request(folder.path / "run", 20);
  request.evaluate_every = 5;
  TrainingRun run(std::move(request), stop, stop->source.get_token());
  const TrainingResult result = run.run();
  CHECK(result.step == 5);
  CHECK(stop->evaluated == 0);
  CHECK(has_checkpoint(result.folder, 5));
  CHECK(run_in(result.folder).metrics().evaluations.empty());
}

TEST_CASE("training run: after the deadline no other step, but one in each session") {
  const ScratchFolder folder;
  RunEvents nobody;
  for (std::int64_t session = 1; session <= 2; ++session) {
    TrainRequest request = points_request(folder.path / "run", 5);
    request.resume = "auto";
    request.deadline = std::chrono::steady_clock::now();
    const TrainingResult result = train(std::move(request), nobody);
    CHECK(result.step == session);
    CHECK(result.status == RunStatus::kInterrupted);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("training run: what a listener throws ends the session as failed") {
  const ScratchFolder folder;
  struct Throwing final : RunEvents {
    std::string failure;
    void step_begin(std::int64_t step) override {
      if (step == 3) fail(ErrorCode::kIo, "no paper in the printer");
    }
    void session_failed(const Error& error) override { failure = error.message(); }
  };
  Throwing listener;
  const std::optional<Error> error =
      error_of([&] { train(points_request(folder.path / "run", 5), listener); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kIo);
  CHECK(listener.failure == "no paper in the printer");
  const RunReader run = run_in(folder.path / "run");
  CHECK(last_session(run).status == RunStatus::kFailed);
  CHECK(last_session(run).message == "no paper in the printer");
  CHECK(last_session(run).last_step == 2);
}

TEST_CASE("training run: a preview writes nothing and knows the sizes") {
  const ScratchFolder folder;
  TrainingRun run(points_request(folder.path / "run", 5), std::make_shared<RunEvents>());
  const TrainingPreview preview = run.preview();
  CHECK(preview.steps == 5);
  CHECK(preview.training_examples == 40);
  CHECK(preview.predicted_bytes > 0);
  CHECK(preview.calls > 0);
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("training run: asked to stop while it compiles it throws, and writes nothing") {
  const ScratchFolder folder;
  struct StopIn final : RunEvents {
    std::stop_source source;
    std::vector<std::string> later;
    std::string_view work;
    void progress(const Progress& moment) override {
      if (source.stop_requested()) later.emplace_back(moment.work);
      if (moment.work == work) source.request_stop();
    }
  };
  for (const std::string_view work : {"passes", "placement", "order", "recompute"}) {
    CAPTURE(work);
    const auto stop = std::make_shared<StopIn>();
    stop->work = work;
    TrainRequest request = points_request(folder.path / "run", 5);
    request.compile.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = 1};
    CHECK_THROWS_AS(TrainingRun(std::move(request), stop, stop->source.get_token()), Stopped);
    CHECK(stop->later.empty());
  }
  CHECK(fs::is_empty(folder.path));
}

}  // namespace trainscope::test
