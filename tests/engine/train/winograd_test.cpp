// Winograd's convolutions in training: near the direct ones, and the same bits on every run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/models/models.h"
#include "engine/session.h"
#include "kernels/api/random.h"
#include "kernels/cpu/support/processor.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

class Pictures final : public BatchSource {
 public:
  Pictures() {
    Tensor x({.dtype = DType::kF32, .shape = {8, 3, 32, 32}});
    std::uint64_t index = 0;
    for (float& value : x.values<float>()) value = static_cast<float>(random_normal(3, 1, index++));
    Tensor labels({.dtype = DType::kI64, .shape = {8}});
    for (std::int64_t& label : labels.values<std::int64_t>()) {
      label = static_cast<std::int64_t>(random_below(3, 2, index++, 10));
    }
    batch_.tensors.emplace_back("x", std::move(x));
    batch_.tensors.emplace_back("labels", std::move(labels));
    batch_.examples = 8;
  }
  const Batch* next() override { return &batch_; }

 private:
  Batch batch_;
};

struct Trained {
  double loss = 0.0;
  std::vector<std::vector<float>> before;  // parameters
  std::vector<std::vector<float>> after;
  std::int64_t transformed = 0;  // calls of kernels
};

Trained train(KernelChoice kernels) {
  const std::string bytes = onnx_bytes(build_model(
      "resnet", {{"image", 32}, {"stem", "cifar"}, {"blocks", Ints{1, 1, 1}}, {"classes", 10}}, 1));
  CompileOptions options;
  options.device = test_device();
  options.import.dims = {{"batch", 8}};
  options.training.mode = GraphMode::kTrain;
  options.training.loss.output = "logits";
  options.training.optimizer.kind = OptimizerKind::kSgd;
  options.lower.kernels = kernels;
  Session session(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), options);
  Trained trained;
  for (const Call& call : session.compiled().program.calls) {
    if (call.kernel != nullptr && call.kernel->transforms) ++trained.transformed;
  }
  const auto parameters = [&] {
    std::vector<std::vector<float>> values;
    const Graph& graph = session.compiled().program.graph;
    for (ValueId v : graph.values_of(ValueKind::kParameter)) {
      const Tensor tensor = session.executor().read(graph.value(v).name);
      values.emplace_back(tensor.values<float>().begin(), tensor.values<float>().end());
    }
    return values;
  };
  trained.before = parameters();
  Pictures pictures;
  Trainer trainer(session.shared_executor(), 1);
  // A long step, so that rounding the parameters hides little of it.
  trained.loss = trainer.run_step(1, 1.0, pictures).loss;
  trained.after = parameters();
  return trained;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("winograd: a ResNet's step is the direct one's but for rounding, and repeats its bits") {
  const Trained direct = train(KernelChoice::kDirect);
  const Trained fast = train(KernelChoice::kFastest);
  CHECK(direct.transformed == 0);
  CHECK((fast.transformed > 0) == cpu::has_avx512());
  CHECK(fast.loss == doctest::Approx(direct.loss).epsilon(1e-6));
  // Of the change of each parameter. An input of a ReLU that is nearly 0 may get the other sign,
  // which layers before it see.
  std::vector<double> errors;
  REQUIRE(fast.after.size() == direct.after.size());
  for (std::size_t i = 0; i < direct.after.size(); ++i) {
    const double change = distance(direct.after[i], direct.before[i]);
    CHECK(change > 0.0);
    errors.push_back(distance(fast.after[i], direct.after[i]) / change);
  }
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < 1e-5);
  CHECK(errors.back() < 1e-2);
  const Trained again = train(KernelChoice::kFastest);
  CHECK(again.loss == fast.loss);
  CHECK(again.after == fast.after);
}

}  // namespace trainscope::test
