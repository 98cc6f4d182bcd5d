// The loss in chunks on a language model with many words: less memory, the same training.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>

#include "engine/core/error.h"
#include "engine/models/models.h"
#include "engine/session.h"
#include "kernels/api/random.h"
#include "tests/support/kept_plans.h"

using namespace trainscope;

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kWords = 5000;

CompileOptions options_with(std::int64_t chunks, GraphMode mode, OpOrder order) {
  CompileOptions options;
  options.import.dims = {{"batch", kBatch}, {"sequence", kTokens}};
  options.training.mode = mode;
  options.training.loss.output = "logits";
  options.training.loss_chunks = chunks;
  options.order = order;
  return options;
}

class SameBatch final : public BatchSource {
 public:
  SameBatch() {
    std::uint64_t stream = 0;
    for (const char* name : {"tokens", "labels"}) {
      Tensor tensor({.dtype = DType::kI64, .shape = {kBatch, kTokens}});
      std::uint64_t index = 0;
      for (std::int64_t& element : tensor.values<std::int64_t>()) {
        element = static_cast<std::int64_t>(random_below(3, stream, index++, kWords));
      }
      if (stream == 1) tensor.values<std::int64_t>()[5] = -100;
      batch_.tensors.emplace_back(name, std::move(tensor));
      ++stream;
    }
    batch_.examples = kBatch;
  }
  const Batch* next() override { return &batch_; }
  void rename_input(const std::string& name) { batch_.tensors.front().first = name; }

 private:
  Batch batch_;
};

// The matrix of the head is the table of tokens (gpt2), or one of its own (llama).
OnnxModel language_model(bool tied) {
  ModelArguments arguments = {
      {"layers", 1}, {"heads", 2}, {"embedding", 16}, {"vocab", kWords}, {"context", kTokens}};
  if (!tied) {
    arguments.emplace("kv-heads", 2);
    arguments.emplace("feed-forward", 32);
  }
  const std::string bytes = onnx_bytes(build_model(tied ? "gpt2" : "llama", arguments, 1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

struct Trained {
  Session session;
  std::vector<double> losses;

  Trained(const OnnxModel& model, std::int64_t chunks, OpOrder order = OpOrder::kMemory)
      : session(model, options_with(chunks, GraphMode::kTrain, order)) {
    test::keep_plan(session.compiled());
    SameBatch batch;
    const Graph& imported = session.compiled().stages.front().graph;
    batch.rename_input(imported.value(imported.inputs.front()).name);
    Trainer trainer(session.shared_executor(), 1);
    for (std::int64_t step = 1; step <= 4; ++step) {
      losses.push_back(trainer.run_step(step, 1e-3, batch).loss);
    }
  }
  std::int64_t arena_bytes() const { return session.compiled().program.arena().bytes; }
};

constexpr std::int64_t kScoreBytes = kBatch * kTokens * kWords * 4;
constexpr std::int64_t kTableBytes = kWords * 16 * 4;

}  // namespace

TEST_CASE("loss chunks: scores of a chunk only are in memory, losses stay") {
  for (bool tied : {true, false}) {
    CAPTURE(tied);
    const OnnxModel model = language_model(tied);
    const Trained whole(model, 1);
    REQUIRE(whole.arena_bytes() > kScoreBytes);  // the scores, which become their gradient
    for (OpOrder order : {OpOrder::kGiven, OpOrder::kMemory}) {
      for (std::int64_t chunks : {2, 8}) {
        CAPTURE(chunks);
        Trained chunked(model, chunks, order);
        // A chunk's scores; two gradients of the matrix while they are added up.
        CHECK(chunked.arena_bytes() <
              whole.arena_bytes() - kScoreBytes + kScoreBytes / chunks + 2 * kTableBytes);
        CHECK(chunked.session.executor().used_bytes() == chunked.arena_bytes());
        for (std::size_t i = 0; i < whole.losses.size(); ++i) {
          CHECK(std::abs(chunked.losses[i] / whole.losses[i] - 1.0) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("loss chunks: recomputation and micro-batches work on the chunks") {
  const OnnxModel model = language_model(true);
  CompileOptions options = options_with(4, GraphMode::kTrain, OpOrder::kMemory);
  options.training.micro_batches = 2;
  options.recompute.mode = RecomputeMode::kLevel2;
  const auto compiled = compile(model, options);
  CHECK(compiled->recompute->repeats > 0);
  options.training.loss_chunks = kBatch * kTokens + 1;
  CHECK_THROWS_WITH_AS(compile(model, options), doctest::Contains("cannot be computed in"), Error);
}
