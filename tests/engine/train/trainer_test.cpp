// Trainer: what a step reports, NaN losses, evaluation weights, and runs continued bit for bit.
#include "engine/train/trainer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "engine/core/file.h"
#include "engine/ir/well_known.h"
#include "tests/support/graph_text.h"
#include "tests/support/kept_plans.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Batch batch_of(std::vector<std::pair<std::string, Tensor>> tensors, std::int64_t loss_terms) {
  Batch batch;
  batch.tensors = std::move(tensors);
  batch.examples = batch.tensors.front().second.shape()[0];
  batch.tokens = 10 * batch.examples;
  batch.loss_terms = loss_terms;
  return batch;
}

// Each batch once.
class Once final : public BatchSource {
 public:
  explicit Once(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  const Batch* next() override { return next_ < batches_.size() ? &batches_[next_++] : nullptr; }

 private:
  std::vector<Batch> batches_;
  std::size_t next_ = 0;
};

// A session on y = Log(x) * w with a squared error.
struct Logarithm {
  OnnxModel onnx =
      model("(float[2,1] x) => (float[2,1] y) <float[1] w = {1}> { l = Log(x)  y = Mul(l, w) }");
  Session session;

  explicit Logarithm(std::int64_t micro_batches = 1) : session(onnx, options(micro_batches)) {}
  static CompileOptions options(std::int64_t micro_batches) {
    CompileOptions options;
    options.device = test_device();
    options.training.loss.kind = LossKind::kMse;
    options.training.optimizer.clip_norm = 100.0;
    options.training.micro_batches = micro_batches;
    return options;
  }
  static Batch batch(float a, float b) {
    return batch_of({{"x", floats({2, 1}, {a, b})}, {"labels", floats({2, 1}, {0, 0})}}, 2);
  }
};

struct ScratchFolder {
  std::filesystem::path path;
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "trainscope-trainer-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
};

// A training run of a reference model, from the first step or from a checkpoint.
struct Run {
  const ReferenceModel& reference;
  std::int64_t micro_batches;
  Session session;
  Trainer trainer;

  Run(const ReferenceModel& model, std::int64_t micro)
      : reference(model),
        micro_batches(micro),
        session(model.model, options(model, micro)),
        trainer(session.shared_executor(), micro) {
    keep_plan(session.compiled());
  }

  static CompileOptions options(const ReferenceModel& model, std::int64_t micro) {
    CompileOptions options = model.options(GraphMode::kTrain);
    options.training.micro_batches = micro;
    options.training.seed = 11;
    return options;
  }

  // Steps first..last; the position in the data follows from the step alone.
  std::vector<double> steps(std::int64_t first, std::int64_t last) {
    std::vector<double> losses;
    for (std::int64_t step = first; step <= last; ++step) {
      std::vector<Batch> batches;
      for (std::int64_t m = 0; m < micro_batches; ++m) {
        const auto index = static_cast<std::size_t>((step * micro_batches + m) % 2);
        batches.push_back(reference.batches[index]);
      }
      Once source(std::move(batches));
      losses.push_back(trainer.run_step(step, 1e-2 / static_cast<double>(step), source).loss);
    }
    return losses;
  }

  std::filesystem::path save(const std::filesystem::path& root, std::int64_t step) const {
    const auto model_tensors = trainer.model_tensors();
    const auto optimizer_tensors = trainer.optimizer_tensors();
    const std::array files{CheckpointFile{"model", model_tensors},
                           CheckpointFile{"optimizer", optimizer_tensors}};
    make_directories(root);
    return save_checkpoint(Folder::open(root), {.step = step, .samples_seen = step, .seed = 11},
                           files);
  }
  void restore(const std::filesystem::path& folder) {
    const Checkpoint checkpoint = load_checkpoint(folder);
    trainer.restore(checkpoint.file("model"), trainer.model_tensors());
    trainer.restore(checkpoint.file("optimizer"), trainer.optimizer_tensors());
  }
  std::vector<NamedTensor> all_tensors() const {
    std::vector<NamedTensor> all = trainer.model_tensors();
    for (const NamedTensor& tensor : trainer.optimizer_tensors()) all.push_back(tensor);
    return all;
  }
};

std::vector<std::byte> bytes_of(const NamedTensor& named) {
  std::vector<std::byte> bytes(named.tensor.type.bytes());
  named.read(0, bytes);
  return bytes;
}

bool same_bits(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  return std::ranges::equal(a, b, [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.tensor.type == y.tensor.type && bytes_of(x) == bytes_of(y);
  });
}

}  // namespace

TEST_CASE("trainer: a step reports its loss, gradient norm, examples and tokens") {
  Logarithm logarithm(2);
  Trainer trainer(logarithm.session.shared_executor(), 2);
  const float e = std::exp(1.0F);
  Once batches({Logarithm::batch(e, e), Logarithm::batch(e * e, e * e)});
  const StepResult result = trainer.run_step(1, 0.1, batches);
  CHECK(result.loss == doctest::Approx((1.0 + 4.0) / 2.0));
  REQUIRE(result.gradient_norm.has_value());
  CHECK(*result.gradient_norm == doctest::Approx((2.0 + 8.0) / 2.0));  // d/dw w^2 l^2
  CHECK(result.examples == 4);
  CHECK(result.tokens == 40);
  CHECK(logarithm.session.executor().read("w").values<float>()[0] == doctest::Approx(0.9));
}

TEST_CASE("trainer: a NaN loss stops before the update and names the first bad tensor") {
  const auto refused = [](float a, float b, float w) {
    Logarithm logarithm;
    Trainer trainer(logarithm.session.shared_executor(), 1);
    logarithm.session.executor().write("w", floats({1}, {w}));
    Once batches({Logarithm::batch(a, b)});
    const std::optional<Error> error = error_of([&] { trainer.run_step(3, 0.1, batches); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kNumeric);
    CHECK(contains(error->message(), "NaN at step 3"));
    CHECK(contains(error->hint(), "--lr"));
    const float after = logarithm.session.executor().read("w").values<float>()[0];
    CHECK((after == w || std::isnan(w)));
    REQUIRE(error->context().size() == 1);
    return error->context()[0];
  };
  CHECK(refused(-1, 2, 1) ==
        "first bad tensor: 'l' of Log 'Log_0': 1 NaN, 0 infinite of 2 elements");
  CHECK(refused(kNaN, 2, 1) == "first bad tensor: input 'x': 1 NaN, 0 infinite of 2 elements");
  CHECK(refused(1, 2, kNaN) == "first bad tensor: parameter 'w': 1 NaN, 0 infinite of 1 elements");
}

TEST_CASE("trainer: the first bad tensor is found in real models, whose inputs' bytes are reused") {
  for (const std::string name : {"lenet", "resnet18", "gpt2"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    Run run(reference, 2);
    run.steps(1, 2);
    const std::string victim = reference.meta.trainable.back();
    Tensor poisoned = run.session.executor().read(victim);
    poisoned.values<float>()[0] = kNaN;
    run.session.executor().write(victim, poisoned);
    const std::string refusal = refusal_of([&] { run.steps(3, 3); });
    CHECK_MESSAGE(contains(refusal, fmt::format("first bad tensor: parameter '{}': 1 NaN", victim)),
                  refusal);
  }
}

TEST_CASE("trainer: a batch that does not fit is refused by name") {
  Logarithm logarithm;
  Trainer trainer(logarithm.session.shared_executor(), 1);
  Once batches({batch_of({{"x", floats({3, 1}, {1, 2, 3})}}, 3)});
  const std::optional<Error> error = error_of([&] { trainer.run_step(1, 0.1, batches); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->message() == "'x' must be f32[2,1], is f32[3,1]");
}

TEST_CASE("evaluate: the mean over all loss terms, batches weighted by theirs") {
  const OnnxModel onnx =
      model("(float[2,2] x) => (float[2,2] y) <float[1] w = {1}> { y = Mul(x, w) }");
  Session session(onnx, {});
  Executor& executor = session.executor(GraphMode::kEvaluate);
  const auto batch = [](std::vector<float> x, std::vector<std::int64_t> labels) {
    const auto terms = static_cast<std::int64_t>(
        std::ranges::count_if(labels, [](std::int64_t label) { return label != -100; }));
    return batch_of({{"x", floats({2, 2}, x)}, {"labels", Tensor::of<std::int64_t>({2}, labels)}},
                    terms);
  };
  // Losses of single labels: log 2, log 2 and log(1 + e^-3); a batch of padding counts nothing.
  Once batches({batch({0, 0, 5, 5}, {0, 1}), batch({3, 0, 9, 9}, {0, -100}),
                batch({1, 2, 3, 4}, {-100, -100})});
  const Evaluation evaluation = evaluate(executor, batches);
  CHECK(evaluation.loss ==
        doctest::Approx((2 * std::log(2.0) + std::log(1 + std::exp(-3.0))) / 3.0));
  CHECK(evaluation.examples == 6);
  Once again({batch({0, 0, 5, 5}, {0, 1})});
  CHECK(evaluate(executor, again).loss == doctest::Approx(std::log(2.0)));
}

TEST_CASE("evaluate: changes nothing and drops nothing between steps of training") {
  for (const std::string name : {"gpt2-dropout", "resnet18"}) {
    const ReferenceModel reference(name);
    Run evaluated(reference, 1);
    Run plain(reference, 1);
    std::vector<double> losses;
    for (std::int64_t step = 1; step <= 3; ++step) {
      CHECK(evaluated.steps(step, step) == plain.steps(step, step));
      Executor& executor = evaluated.session.executor(GraphMode::kEvaluate);
      bind_batch(executor, reference.batches[0]);
      executor.run_micro_step();
      losses.push_back(read_loss(executor));
      bind_batch(executor, reference.batches[0]);
      executor.run_micro_step();
      CHECK(read_loss(executor) == losses.back());
    }
    CHECK(losses[0] != losses[1]);  // it sees the trained parameters
    CHECK(same_bits(evaluated.all_tensors(), plain.all_tensors()));
  }
}

TEST_CASE("trainer: a run saved and continued elsewhere equals the uninterrupted one bit for bit") {
  for (const std::string name : {"mlp", "lenet", "resnet18", "gpt2-dropout"}) {
    for (std::int64_t micro_batches : {1, 3}) {
      CAPTURE(name);
      CAPTURE(micro_batches);
      const ScratchFolder scratch;
      const ReferenceModel reference(name);
      Run whole(reference, micro_batches);
      whole.steps(1, 3);
      const std::filesystem::path folder = whole.save(scratch.path, 3);
      const std::vector<double> expected = whole.steps(4, 7);

      Run continued(reference, micro_batches);
      continued.restore(folder);
      CHECK(continued.steps(4, 7) == expected);
      CHECK(same_bits(continued.all_tensors(), whole.all_tensors()));

      Run fresh(reference, micro_batches);  // without the checkpoint it would be another run
      CHECK(fresh.steps(4, 7) != expected);
    }
  }
}

TEST_CASE("trainer: checkpoints hold parameters, statistics and moments, no sums of gradients") {
  const ReferenceModel reference("resnet18");
  const Run run(reference, 2);
  const auto has = [](const std::vector<NamedTensor>& tensors, std::string_view name) {
    return std::ranges::any_of(tensors, [&](const NamedTensor& t) { return t.name == name; });
  };
  const std::vector<NamedTensor> of_model = run.trainer.model_tensors();
  const std::vector<NamedTensor> of_optimizer = run.trainer.optimizer_tensors();
  CHECK(has(of_model, "bn1.running_mean"));
  for (const std::string& parameter : reference.meta.trainable) {
    CHECK(has(of_model, parameter));
    CHECK(has(of_optimizer, "ai.trainscope.adamw.m/" + parameter));
    CHECK(has(of_optimizer, "ai.trainscope.adamw.v/" + parameter));
  }
  CHECK(of_optimizer.size() == 2 * reference.meta.trainable.size());
  for (const NamedTensor& tensor : of_model) CHECK_FALSE(tensor.name.starts_with(kOwnPrefix));
  CHECK(run.session.compiled().program.graph.find(kAccumulatedPrefix +
                                                  reference.meta.trainable.front()) != kNoValue);
}

TEST_CASE("trainer: dropout masks follow the seed") {
  const ReferenceModel reference("gpt2-dropout");
  const auto losses = [&](std::uint64_t seed) {
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.training.seed = seed;
    Session session(reference.model, options);
    Trainer trainer(session.shared_executor(), 1);
    Cycle batches(reference.batches);
    std::vector<double> list;
    for (std::int64_t step = 1; step <= 3; ++step) {
      list.push_back(trainer.run_step(step, 0.0, batches).loss);
    }
    return list;
  };
  const std::vector<double> first = losses(1);
  CHECK(first == losses(1));
  CHECK(first[0] != losses(2)[0]);
  CHECK(first[0] != first[2]);  // the same batch and parameters, another step
}

}  // namespace trainscope::test
