// Training a BERT on padded texts, with and without the padding: the same losses.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "engine/models/models.h"
#include "engine/session.h"
#include "kernels/api/random.h"
#include "tests/support/kept_plans.h"

using namespace trainscope;

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kWords = 100;
constexpr std::int64_t kLengths[kBatch] = {32, 11, 0, 7};

OnnxModel bert(double dropout) {
  const std::string bytes = onnx_bytes(build_model("bert",
                                                   {{"layers", std::int64_t{2}},
                                                    {"heads", std::int64_t{2}},
                                                    {"embedding", std::int64_t{32}},
                                                    {"feed-forward", std::int64_t{64}},
                                                    {"vocab", kWords},
                                                    {"context", kTokens},
                                                    {"segments", false},
                                                    {"mask", true},
                                                    {"dropout", dropout}},
                                                   1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

class PaddedTexts final : public BatchSource {
 public:
  PaddedTexts() {
    std::uint64_t stream = 0;
    for (const char* name : {"ids", "mask", "labels"}) {
      Tensor tensor({.dtype = DType::kI64, .shape = {kBatch, kTokens}});
      fill(tensor.values<std::int64_t>(), name, stream++);
      batch_.tensors.emplace_back(name, std::move(tensor));
    }
    batch_.examples = kBatch;
  }
  const Batch* next() override { return &batch_; }

 private:
  static void fill(std::span<std::int64_t> elements, std::string_view name, std::uint64_t stream) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto word = static_cast<std::int64_t>(random_below(3, stream, i, kWords));
      const bool real = static_cast<std::int64_t>(i) % kTokens < kLengths[i / kTokens];
      elements[i] = name == "mask" ? std::int64_t{real} : name == "labels" && !real ? -100 : word;
    }
  }

  Batch batch_;
};

CompileOptions step_options() {
  CompileOptions options;
  options.import.dims = {{"batch", kBatch}, {"sequence", kTokens}};
  options.training.mode = GraphMode::kTrain;
  options.training.loss.output = "logits";
  options.training.optimizer.clip_norm = 1.0;
  return options;
}

std::vector<double> losses_of(const OnnxModel& model, CompileOptions options, bool skip_padding) {
  if (skip_padding) options.training.skip_padding = "mask";
  Session session(model, std::move(options));
  test::keep_plan(session.compiled());
  PaddedTexts texts;
  Trainer trainer(session.shared_executor(), 1);
  std::vector<double> losses;
  for (std::int64_t step = 1; step <= 6; ++step) {
    losses.push_back(trainer.run_step(step, 1e-3, texts).loss);
  }
  CHECK(session.executor().used_bytes() == session.compiled().program.arena().bytes);
  return losses;
}

void check_same(const OnnxModel& model, const CompileOptions& options, double bound) {
  const std::vector<double> plain = losses_of(model, options, false);
  const std::vector<double> skipping = losses_of(model, options, true);
  CHECK(plain.back() < plain.front());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(skipping[i] / plain[i] - 1.0) < bound);
  }
}

}  // namespace

TEST_CASE("skip padding: the losses of training on all rows") {
  const OnnxModel model = bert(0.0);
  CompileOptions options = step_options();
  SUBCASE("f32") { check_same(model, options, 1e-5); }
  SUBCASE("bf16") {
    options.training.precision = StepPrecision::kBF16;
    check_same(model, options, 1e-2);
  }
  SUBCASE("what is forgotten is rematerialized") {
    options.recompute.mode = RecomputeMode::kLevel2;
    check_same(model, options, 1e-5);
  }
  SUBCASE("the head of labels that count") {
    options.training.skip_ignored = true;
    check_same(model, options, 1e-5);
  }
}

TEST_CASE("skip padding: strict determinism holds for any number of threads") {
  const OnnxModel model = bert(0.1);
  CompileOptions options = step_options();
  options.lower.same_bits = SameBits::kAnyThreads;
  options.lower.threads = 1;
  const std::vector<double> one = losses_of(model, options, true);
  options.lower.threads = 3;
  CHECK(losses_of(model, options, true) == one);
}

TEST_CASE("skip padding: dropout draws other numbers, of the same kind") {
  const OnnxModel model = bert(0.1);
  check_same(model, step_options(), 0.05);
}
