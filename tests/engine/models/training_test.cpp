// Every builder's model trains: finite gradients, falling loss, and the same answers once exported.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"
#include "engine/models/models.h"
#include "engine/session.h"
#include "tests/support/kept_plans.h"

using namespace trainscope;

namespace {

struct Tiny {
  std::string name;
  ModelArguments arguments;
  std::int64_t class_axis = -1;
};

const std::vector<Tiny>& tiny_models() {
  static const std::vector<Tiny> kModels = {
      {"gpt2",
       {{"layers", 2},
        {"heads", 2},
        {"embedding", 16},
        {"vocab", 13},
        {"context", 8},
        {"dropout", 0.1}}},
      {"bert",
       {{"layers", 2},
        {"heads", 2},
        {"embedding", 16},
        {"feed-forward", 32},
        {"vocab", 13},
        {"context", 8}}},
      {"llama",
       {{"layers", 2},
        {"heads", 4},
        {"kv-heads", 2},
        {"embedding", 16},
        {"feed-forward", 24},
        {"vocab", 13},
        {"context", 8}}},
      {"vit",
       {{"layers", 2},
        {"heads", 2},
        {"embedding", 16},
        {"feed-forward", 32},
        {"patch", 4},
        {"image", 16},
        {"classes", 5}}},
      {"resnet",
       {{"blocks", Ints{1, 1}},
        {"width", 4},
        {"image", 16},
        {"classes", 5},
        {"stem", std::string("cifar")}}},
      {"resnet",
       {{"blocks", Ints{1, 2}}, {"bottleneck", true}, {"width", 4}, {"image", 32}, {"classes", 5}}},
      {"lenet", {{"image", 16}, {"classes", 5}}},
      {"unet", {{"depth", 2}, {"width", 4}, {"image", 8}, {"classes", 3}, {"dropout", 0.1}}, 1},
      {"mlp", {{"dims", Ints{6, 8, 5}}}},
  };
  return kModels;
}

constexpr std::int64_t kBatch = 4;

CompileOptions options_of(const Tiny& tiny, GraphMode mode) {
  CompileOptions options;
  options.import.dims = {{"batch", kBatch}};
  if (tiny.arguments.contains("context")) options.import.dims["sequence"] = 6;
  options.training.mode = mode;
  options.training.loss.class_axis = tiny.class_axis;
  options.training.keep_gradients = mode == GraphMode::kGradients;
  return options;
}

OnnxModel read(const Tiny& tiny) {
  const std::string bytes = onnx_bytes(build_model(tiny.name, tiny.arguments, 5));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

// Floats are normal, integers below `kinds`.
Tensor random_tensor(const TensorType& type, std::int64_t kinds, std::uint64_t stream) {
  Tensor tensor(type);
  std::uint64_t index = 0;
  if (type.dtype == DType::kI64) {
    for (std::int64_t& element : tensor.values<std::int64_t>()) {
      element = static_cast<std::int64_t>(
          random_below(17, stream, index++, static_cast<std::uint64_t>(kinds)));
    }
    return tensor;
  }
  for (float& element : tensor.values<float>()) {
    element = static_cast<float>(random_normal(17, stream, index++));
  }
  return tensor;
}

Batch batch_for(const Compiled& compiled, std::int64_t class_axis) {
  const Graph& imported = compiled.stages.front().graph;
  const Shape& logits = imported.value(imported.outputs.front()).type.shape;
  const std::int64_t classes = logits[normalized_axis(class_axis, logits.rank)];
  Batch batch;
  std::uint64_t stream = 0;
  for (ValueId id : imported.inputs) {
    const Value& input = imported.value(id);
    const std::int64_t kinds = input.name == "segments" ? 2 : classes;
    batch.tensors.emplace_back(input.name, random_tensor(input.type, kinds, stream++));
  }
  const Graph& final = compiled.program.graph;
  const ValueId labels = final.find("labels");
  if (labels != kNoValue) {
    batch.tensors.emplace_back("labels",
                               random_tensor(final.value(labels).type, classes, stream++));
  }
  batch.examples = kBatch;
  return batch;
}

class Repeated final : public BatchSource {
 public:
  explicit Repeated(Batch batch) : batch_(std::move(batch)) {}
  const Batch* next() override { return &batch_; }

 private:
  Batch batch_;
};

Tensor logits_of(Executor& executor, const Batch& batch) {
  for (const auto& [name, tensor] : batch.tensors) {
    if (name != "labels") executor.write(name, tensor);
  }
  executor.run_micro_step();
  return executor.read("logits");
}

struct Curve {
  std::vector<double> losses;
  std::int64_t arena_bytes = 0;
};

Curve curve_of(const OnnxModel& model, const Tiny& tiny, StepPrecision precision, int threads) {
  CompileOptions options = options_of(tiny, GraphMode::kTrain);
  options.training.precision = precision;
  options.lower.threads = threads;
  options.lower.same_bits = SameBits::kAnyThreads;
  Session session(model, options);
  Repeated batches(batch_for(session.compiled(), tiny.class_axis));
  Trainer trainer(session.shared_executor(), 1);
  Curve curve{.losses = {}, .arena_bytes = session.compiled().program.arena().bytes};
  for (std::int64_t step = 1; step <= 30; ++step) {
    curve.losses.push_back(trainer.run_step(step, 3e-3, batches).loss);
  }
  CHECK(session.executor().used_bytes() == curve.arena_bytes);
  return curve;
}

// The largest distance, as a share of the loss at first.
double distance(const Curve& a, const Curve& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    most = std::max(most, std::fabs(a.losses[i] - b.losses[i]));
  }
  return most / a.losses.front();
}

std::filesystem::path scratch_file() {
  return std::filesystem::temp_directory_path() /
         ("trainscope-models-" + std::to_string(getpid()) + ".onnx");
}

}  // namespace

TEST_CASE("models: every gradient is finite, and every parameter has one that is not zero") {
  for (const Tiny& tiny : tiny_models()) {
    CAPTURE(tiny.name);
    const OnnxModel model = read(tiny);
    const auto compiled = compile(model, options_of(tiny, GraphMode::kGradients));
    test::keep_plan(*compiled);
    Executor executor(compiled->program);
    executor.load_initial();
    bind_batch(executor, batch_for(*compiled, tiny.class_axis));
    if (executor.has(kRandomStepInput)) {
      executor.write(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
    }
    executor.run_micro_step();
    const Graph& graph = compiled->program.graph;
    CHECK(graph.gradients.size() == graph.values_of(ValueKind::kParameter).size());
    for (const GradientOf& pair : graph.gradients) {
      CAPTURE(graph.value(pair.of).name);
      const Tensor gradient = executor.read(graph.value(pair.gradient).name);
      double sum = 0.0;
      for (const float element : gradient.values<float>()) sum += std::fabs(element);
      CHECK(std::isfinite(sum));
      const std::string& name = graph.value(pair.of).name;
      // Under softmax a key bias has none but rounding.
      if (name.ends_with("key.bias")) continue;
      // A ViT's head starts at 0: nothing behind it has a gradient in the first step.
      const bool behind_zero_head = tiny.name == "vit" && !name.starts_with("heads.");
      CHECK((sum > 0.0) != behind_zero_head);
    }
  }
}

TEST_CASE("models: every builder's model learns a batch and answers the same when exported") {
  for (const Tiny& tiny : tiny_models()) {
    CAPTURE(tiny.name);
    const OnnxModel model = read(tiny);
    Session session(model, options_of(tiny, GraphMode::kTrain));
    test::keep_plan(session.compiled());
    const Batch batch = batch_for(session.compiled(), tiny.class_axis);
    Repeated batches(batch);
    Trainer trainer(session.shared_executor(), 1);
    double first = 0.0, last = 0.0;
    for (std::int64_t step = 1; step <= 30; ++step) {
      last = trainer.run_step(step, 3e-3, batches).loss;
      if (step == 1) first = last;
    }
    CHECK(last < 0.9 * first);
    const Tensor here = logits_of(session.executor(GraphMode::kInference), batch);
    const std::filesystem::path file = scratch_file();
    session.export_inference(entry_of(file));
    const OnnxModel exported = OnnxModel::read(file);
    const auto compiled = compile(exported, options_of(tiny, GraphMode::kInference));
    Executor executor(compiled->program);
    executor.load_initial();
    const Tensor there = logits_of(executor, batch);
    CHECK(std::ranges::equal(here.values<float>(), there.values<float>()));
    std::filesystem::remove(file);
  }
}

TEST_CASE("models: curves in bf16 and fp16 are near those in f32, and repeat on any threads") {
  for (const Tiny& tiny : tiny_models()) {
    CAPTURE(tiny.name);
    const OnnxModel model = read(tiny);
    const Curve plain = curve_of(model, tiny, StepPrecision::kF32, 1);
    for (StepPrecision precision : {StepPrecision::kBF16, StepPrecision::kF16}) {
      CAPTURE(name_of(precision));
      const Curve mixed = curve_of(model, tiny, precision, 1);
      CHECK(distance(plain, mixed) < 0.02);
      const bool has_matmuls = tiny.name != "unet";
      CHECK((distance(plain, mixed) > 0.0) == has_matmuls);
      CHECK(curve_of(model, tiny, precision, 2).losses == mixed.losses);
    }
  }
}

TEST_CASE("models: activations in bf16 take less memory") {
  const Tiny tiny{"gpt2",
                  {{"layers", 2}, {"heads", 2}, {"embedding", 32}, {"vocab", 17}, {"context", 64}}};
  const OnnxModel model = read(tiny);
  const auto arena = [&](StepPrecision precision) {
    CompileOptions options = options_of(tiny, GraphMode::kTrain);
    options.import.dims = {{"batch", 8}, {"sequence", 64}};
    options.training.precision = precision;
    return compile(model, options)->program.arena().bytes;
  };
  CHECK(arena(StepPrecision::kBF16) < arena(StepPrecision::kF32) * 3 / 4);
}

TEST_CASE("models: external data is read back as it was made") {
  const PlainModel model = build_model("lenet", {}, 1);
  const std::filesystem::path file = scratch_file();
  write_onnx(model, file, Weights::kExternal);
  CHECK(std::filesystem::exists(file.string() + ".data"));
  const OnnxModel back = OnnxModel::read(file);
  for (const PlainInitializer& each : model.initializers) {
    const Tensor expected = each.elements();
    CHECK(
        std::ranges::equal(back.initializer(each.name)->values<float>(), expected.values<float>()));
  }
  std::filesystem::remove(file);
  std::filesystem::remove(file.string() + ".data");
}
