// Runs of several ranks: each has its own plan and uses what it predicts; those that differ say so.
#include <doctest/doctest.h>

#include <string>

#include "engine/core/error.h"
#include "engine/run/training_run.h"
#include "tests/engine/run/run_tools.h"
#include "tests/support/forked_ranks.h"

namespace trainscope::test {
namespace {

// A channel that belongs to the test, not to the request.
std::shared_ptr<Communicator> borrowed(Communicator& channel) {
  return {std::shared_ptr<void>(), &channel};
}

TrainRequest request_of(const ScratchFolder& folder, Communicator& channel) {
  TrainRequest request = points_request(folder.path / "run", 6);
  request.compile.training.optimizer.clip_norm = 0.5;
  request.compile.lower.threads = 1;
  request.ranks = borrowed(channel);
  return request;
}

struct Ended {
  ErrorCode code = ErrorCode::kRunFailed;
  std::string message;
};

// None: the run ended well.
std::optional<Ended> error_of_run(TrainRequest request) {
  RunEvents nobody;
  try {
    train(std::move(request), nobody);
    return std::nullopt;
  } catch (const Error& error) {
    return Ended{.code = error.code(), .message = error.message()};
  }
}

}  // namespace

TEST_CASE("ranks of a run: each uses the bytes that it predicted, and only rank 0 has a folder") {
  const ScratchFolder folder;
  const RanksResult result = run_ranks(3, [&](Communicator& channel) {
    RunEvents nobody;
    const TrainingResult run = train(request_of(folder, channel), nobody);
    const bool has_folder = !run.folder.empty();
    return run.used_bytes == run.predicted_bytes && run.used_bytes > 0 && run.step == 6 &&
           run.samples_seen == 3 * 6 * 4 && has_folder == (channel.rank() == 0);
  });
  CHECK(result.all_true());
  CHECK(result.failure.empty());
}

TEST_CASE("ranks of a run: sums over ranks are calls of the update, in place, before all others") {
  const ScratchFolder folder;
  const RanksResult result = run_ranks(2, [&](Communicator& channel) {
    struct Listener final : RunEvents {
      std::shared_ptr<const Compiled> compiled;
      void session_begin(const SessionFacts& facts) override { compiled = facts.compiled; }
    } listener;
    train(request_of(folder, channel), listener);
    if (channel.rank() > 0) return true;  // nothing is recorded there
    const Program& program = listener.compiled->program;
    const Call& first = program.call(program.update_begin);
    return program.graph.node(first.node).op->name == "AllReduce" &&
           first.phase == Phase::kUpdate && first.kernel->name == "all_reduce.ranks" &&
           first.inputs[0].buffer == first.outputs[0].buffer &&
           first.inputs[0].offset == first.outputs[0].offset;
  });
  CHECK(result.all_true());
}

TEST_CASE("ranks of a run: of one with other settings than rank 0 both say which") {
  const ScratchFolder folder;
  const RanksResult result = run_ranks(2, [&](Communicator& channel) {
    TrainRequest request = request_of(folder, channel);
    if (channel.rank() == 1) request.compile.training.optimizer.momentum = 0.25;
    const std::optional<Ended> ended = error_of_run(std::move(request));
    return ended && ended->code == ErrorCode::kDistributed &&
           ended->message == "rank 1 has other settings than rank 0: optimizer";
  });
  CHECK(result.all_true());
  CHECK(result.failure == "rank 1 has other settings than rank 0: optimizer");
}

TEST_CASE("ranks of a run: sums of other sizes are an error of the call, which names both") {
  const ScratchFolder folder;
  const RanksResult result = run_ranks(2, [&](Communicator& channel) {
    if (channel.rank() == 0) {
      const std::optional<Ended> ended = error_of_run(request_of(folder, channel));
      return ended && ended->code == ErrorCode::kDistributed &&
             ended->message == channel.failure() &&
             ended->message.starts_with(
                 "ranks do not agree: call 1 of rank 0 is broadcast of 1 "
                 "i64 from rank 0, that of rank 1 is all-reduce of 7 f32");
    }
    float x[7] = {};
    return channel.all_reduce({}, x, x, 7, DType::kF32).code == DeviceStatus::Code::kBadInput;
  });
  CHECK(result.all_true());
}

TEST_CASE("ranks of a run: what they cannot do together is refused") {
  const ScratchFolder folder;
  const RanksResult result = run_ranks(2, [&](Communicator& channel) {
    TrainRequest records = request_of(folder, channel);
    records.numerics = NumericsRequest{};
    const std::optional<Ended> recorded = error_of_run(std::move(records));
    TrainRequest early = request_of(folder, channel);
    early.compile.training.optimizer.clip_norm = 0.0;
    early.compile.training.optimizer.in_backward = true;
    const std::optional<Ended> updated = error_of_run(std::move(early));
    return recorded && recorded->code == ErrorCode::kUsage &&
           recorded->message.ends_with("leave out --record-numerics") && updated &&
           updated->code == ErrorCode::kUsage &&
           updated->message.starts_with(
               "the optimizer cannot run in the backward phase on 2 ranks");
  });
  CHECK(result.all_true());
}

}  // namespace trainscope::test
