// Issues of ONNX Runtime's tracker that are about what training does, not about one op or model.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "engine/models/models.h"
#include "tests/engine/core/core_test_tools.h"
#include "tests/engine/models/ort_issues.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

// A model under training on one batch.
struct OrtTraining {
  Session session;
  SameOrtBatch batches;
  Trainer trainer;
  std::int64_t step = 0;

  OrtTraining(const OrtIssue& issue, const CompileOptions& options)
      : session(model_of(issue), options),
        batches(batch_of(session.compiled(), issue)),
        trainer(session.shared_executor(), 1) {}
  double run(double learning_rate) { return trainer.run_step(++step, learning_rate, batches).loss; }
  std::vector<float> read(const std::string& name) {
    const Tensor tensor = session.executor().read(name);
    const std::span<const float> elements = tensor.values<float>();
    return {elements.begin(), elements.end()};
  }
  // The gradient of a parameter in the last step.
  std::vector<float> gradient(std::string_view parameter) {
    const Graph& graph = session.compiled().program.graph;
    for (const GradientOf& pair : graph.gradients) {
      if (graph.value(pair.of).name == parameter) return read(graph.value(pair.gradient).name);
    }
    return {};
  }
};

CompileOptions sgd_options(const OrtIssue& issue) {
  CompileOptions options = options_of(issue, GraphMode::kTrain);
  options.training.optimizer.kind = OptimizerKind::kSgd;
  options.training.keep_gradients = true;
  return options;
}

const OrtIssue kTwoLayers = {
    .issue = "two layers",
    .inputs = "float[5,4] x",
    .outputs = "float[5,3] logits",
    .weights = "float[4,6] body_w; float[6] body_b; float[6,3] head_w; float[3] head_b",
    .nodes = "{ h = Gemm(x, body_w, body_b)  r = Relu(h)  logits = Gemm(r, head_w, head_b) }",
    .loss = {.output = "logits"},
    .integers_below = 3};

const OrtIssue kNormed = {
    .issue = "batch norm and dropout",
    .inputs = "float[6,3] x",
    .outputs = "float[6,2] y",
    .weights =
        "float[3] scale; float[3] shift; float[3] mean; float[3] var; float[3,2] w;"
        "bool training = {1}",
    .nodes = R"({ ratio = Constant <value_float = 0.5> ()
  n, m, v = BatchNormalization <training_mode = 1> (x, scale, shift, mean, var)
  d = Dropout(n, ratio, training)  y = MatMul(d, w) })",
    .loss = {.kind = LossKind::kMse, .output = "y"}};

std::vector<float> inference_output(Executor& executor, const Batch& batch,
                                    std::string_view output) {
  for (const auto& [name, tensor] : batch.tensors) {
    if (executor.has(name)) executor.write(name, tensor);
  }
  executor.run_micro_step();
  const Tensor tensor = executor.read(output);
  const std::span<const float> elements = tensor.values<float>();
  return {elements.begin(), elements.end()};
}

// The mean over rows of logsumexp(x) - x[label].
double cross_entropy_of(const Tensor& logits, const Tensor& labels) {
  const auto classes = static_cast<std::size_t>(logits.shape()[1]);
  double sum = 0.0;
  for (std::size_t row = 0; row < labels.values<std::int64_t>().size(); ++row) {
    const std::span<const float> scores = logits.values<float>().subspan(row * classes, classes);
    double total = 0.0;
    for (const float score : scores) total += std::exp(static_cast<double>(score));
    const auto label = static_cast<std::size_t>(labels.values<std::int64_t>()[row]);
    sum += std::log(total) - static_cast<double>(scores[label]);
  }
  return sum / static_cast<double>(labels.elements());
}

}  // namespace

TEST_CASE("ort issues #13057, #11363: gradients by inputs, for a model that trains nothing") {
  const OrtIssue product = {.issue = "product",
                            .inputs = "float[4] a, float[4] b",
                            .outputs = "float loss",
                            .weights = "int64[1] axis = {0}",
                            .nodes = R"({ c = Mul(a, b)  e = Add(c, a)
  loss = ReduceSum <keepdims = 0> (e, axis) })",
                            .loss = {.kind = LossKind::kOutput, .output = "loss"}};
  CompileOptions options = options_of(product, GraphMode::kGradients);
  options.training.gradient_of = {"a", "b"};
  const auto compiled = compile(model_of(product), options);
  Executor executor(compiled->program);
  executor.load_initial();
  const Batch batch = batch_of(*compiled, product);
  bind_step(executor, batch);
  executor.run_micro_step();
  const Graph& graph = compiled->program.graph;
  REQUIRE(graph.gradients.size() == 2);
  const std::span<const float> a = batch.tensors[0].second.values<float>();
  const std::span<const float> b = batch.tensors[1].second.values<float>();
  for (const GradientOf& pair : graph.gradients) {
    const Tensor gradient = executor.read(graph.value(pair.gradient).name);
    for (std::size_t i = 0; i < 4; ++i) {
      const bool by_a = graph.value(pair.of).name == "a";
      CHECK(gradient.values<float>()[i] == (by_a ? b[i] + 1.0F : a[i]));
    }
  }
}

TEST_CASE("ort issues #19370, #17879: running statistics follow the batches and are not trained") {
  OrtTraining training(kNormed, sgd_options(kNormed));
  const Graph& graph = training.session.compiled().program.graph;
  CHECK(graph.value(graph.find("mean")).kind == ValueKind::kState);
  CHECK(graph.value(graph.find("var")).kind == ValueKind::kState);
  CHECK(graph.gradients.size() == 3);  // scale, shift and w
  const std::vector<float> before = training.read("mean");
  const std::vector<float> variance = training.read("var");
  const Batch batch = *training.batches.next();
  const std::span<const float> x = batch.tensors.front().second.values<float>();
  training.run(0.1);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double mean = 0.0, squares = 0.0;
    for (std::size_t row = 0; row < 6; ++row) mean += x[row * 3 + channel] / 6.0;
    for (std::size_t row = 0; row < 6; ++row) squares += std::pow(x[row * 3 + channel] - mean, 2);
    CHECK(training.read("mean")[channel] ==
          doctest::Approx(0.9 * before[channel] + 0.1 * mean).epsilon(1e-5));
    CHECK(training.read("var")[channel] ==
          doctest::Approx(0.9 * variance[channel] + 0.1 * squares / 6.0).epsilon(1e-5));
  }
}

TEST_CASE("ort issue #16597: gradients and parameters are read and set by name between steps") {
  OrtTraining training(kTwoLayers, sgd_options(kTwoLayers));
  for (const char* name : {"body_w", "body_b", "head_w", "head_b"}) {
    CAPTURE(name);
    // Every other element is held at a value of the caller's.
    Tensor held = training.session.executor().read(name);
    for (std::int64_t i = 0; i < held.elements(); i += 2) {
      held.values<float>()[static_cast<std::size_t>(i)] = 0.25F;
    }
    training.session.executor().write(name, held);
    training.run(0.5);
    const std::vector<float> gradient = training.gradient(name);
    const std::vector<float> after = training.read(name);
    REQUIRE(gradient.size() == after.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      CHECK(after[i] ==
            doctest::Approx(held.values<float>()[i] - 0.5F * gradient[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("ort issue #4175: groups of parameters have learning rates of their own") {
  CompileOptions options = sgd_options(kTwoLayers);
  options.training.optimizer.groups = {
      {.pattern = "body_*", .weight_decay = {}, .learning_rate_scale = 0.125},
      {.pattern = "head_b", .weight_decay = 0.5, .learning_rate_scale = 2.0}};
  OrtTraining training(kTwoLayers, options);
  struct Group {
    const char* name;
    float rate;
    float decay;
  };
  const Group groups[] = {{"body_w", 0.025F, 0.0F},
                          {"body_b", 0.025F, 0.0F},
                          {"head_w", 0.2F, 0.0F},
                          {"head_b", 0.4F, 0.5F}};
  std::vector<std::vector<float>> before;
  for (const Group& group : groups) before.push_back(training.read(group.name));
  training.run(0.2);
  for (std::size_t g = 0; g < before.size(); ++g) {
    CAPTURE(groups[g].name);
    const std::vector<float> after = training.read(groups[g].name);
    const std::vector<float> gradient = training.gradient(groups[g].name);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const float direction = gradient[i] + groups[g].decay * before[g][i];
      CHECK(after[i] == doctest::Approx(before[g][i] - groups[g].rate * direction).epsilon(1e-5));
    }
  }
}

TEST_CASE("ort issue #15867: an ONNX model's head is trained alone, and the model exported") {
  CompileOptions options = options_of(kTwoLayers, GraphMode::kTrain);
  options.import.frozen = {"body_*"};
  OrtTraining training(kTwoLayers, options);
  const std::vector<float> head = training.read("head_w");
  const double first = training.run(0.02);
  double last = first;
  for (int i = 0; i < 60; ++i) last = training.run(0.02);
  CHECK(last < 0.9 * first);
  const TemporaryFolder folder;
  training.session.export_inference(entry_of(folder / "trained.onnx"));
  const OnnxModel exported = OnnxModel::read(folder / "trained.onnx");
  const OnnxModel source = model_of(kTwoLayers);
  const auto same = [&](const char* name) {
    return std::ranges::equal(exported.initializer(name)->values<float>(),
                              source.initializer(name)->values<float>());
  };
  CHECK(same("body_w"));
  CHECK(same("body_b"));
  CHECK(!same("head_w"));
  CHECK(
      std::ranges::equal(exported.initializer("head_w")->values<float>(), training.read("head_w")));
  CHECK(head != training.read("head_w"));
}

TEST_CASE("ort issue #14185: what is exported after training is in inference form") {
  OrtTraining training(kNormed, options_of(kNormed, GraphMode::kTrain));
  for (int i = 0; i < 5; ++i) training.run(0.01);
  const Batch batch = *training.batches.next();
  const std::vector<float> here =
      inference_output(training.session.executor(GraphMode::kInference), batch, "y");
  const TemporaryFolder folder;
  training.session.export_inference(entry_of(folder / "trained.onnx"));
  const OnnxModel exported = OnnxModel::read(folder / "trained.onnx");
  // Batch norm and dropout in the form that the file has them in.
  CompileOptions as_written = options_of(kNormed, GraphMode::kInference);
  as_written.passes.disabled = {"training_form"};
  const auto compiled = compile(exported, as_written);
  Executor there(compiled->program);
  there.load_initial();
  CHECK(inference_output(there, batch, "y") == here);
  CHECK(print(compiled->stages.front().graph).find("training_mode=1") == std::string::npos);
  CHECK(print(graph(model_of(kNormed))).find("training_mode=1") != std::string::npos);
}

TEST_CASE("ort issues #22188, #22411, #23041: a model with data beside it, by its path") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.onnx";
  write_onnx(build_model("mlp", {{"dims", Ints{6, 8, 5}}}, 3), path, Weights::kExternal);
  REQUIRE(std::filesystem::exists(path.string() + ".data"));
  CompileOptions options;
  options.import.dims = {{"batch", 4}};
  options.training.loss = {.kind = LossKind::kMse, .output = "logits"};
  Session session(OnnxModel::read(path), options);
  SameOrtBatch batches(batch_of(session.compiled(), {.loss = options.training.loss}));
  Trainer trainer(session.shared_executor(), 1);
  const double first = trainer.run_step(1, 1e-2, batches).loss;
  double last = first;
  for (std::int64_t step = 2; step <= 40; ++step) {
    last = trainer.run_step(step, 1e-2, batches).loss;
  }
  CHECK(last < 0.9 * first);
  const std::filesystem::path out = folder / "trained.onnx";
  export_inference(session.model(), out,
                   {.weights = Weights::kExternal,
                    .tensor = [&](std::string_view name) -> SharedTensor {
                      if (!session.executor().has(name)) return nullptr;
                      return std::make_shared<const Tensor>(session.executor().read(name));
                    },
                    .drop_outputs = {}});
  REQUIRE(std::filesystem::exists(out.string() + ".data"));
  const OnnxModel trained = OnnxModel::read(out);
  for (const ModelInitializer& each : trained.initializers()) {
    CAPTURE(each.name);
    const Tensor here = session.executor().read(each.name);
    CHECK(
        std::ranges::equal(trained.initializer(each.name)->values<float>(), here.values<float>()));
  }
}

TEST_CASE("ort issue #19185: a text classifier's loss is that of the scores of the same step") {
  const OrtIssue classifier = {
      .issue = "#19185",
      .inputs = "int64[6,7] tokens",
      .outputs = "float[6,5] logits",
      .weights =
          "float[20,4] words; float[4,8] w1; float[8] b1; float[8,5] w2; float[5] b2;"
          "int64[1] along = {1}",
      .nodes = R"({ e = Gather(words, tokens)  p = ReduceMean <axes = [1], keepdims = 0> (e)
  h = Gemm(p, w1, b1)  r = Relu(h)  logits = Gemm(r, w2, b2) })",
      .loss = {.output = "logits"},
      .integers_below = 5};
  CompileOptions options = options_of(classifier, GraphMode::kTrain);
  options.training.keep_outputs = true;
  OrtTraining training(classifier, options);
  const Batch batch = *training.batches.next();
  double first = 0.0, last = 0.0;
  for (int step = 0; step < 80; ++step) {
    last = training.run(2e-2);
    if (step == 0) first = last;
    const Tensor logits = training.session.executor().read("logits");
    CHECK(last ==
          doctest::Approx(cross_entropy_of(logits, batch.tensors.back().second)).epsilon(1e-5));
  }
  CHECK(last < 0.1 * first);
}

TEST_CASE(
    "ort issues #7823, #9053, #17875: a model without a loss gets one, with labels as input") {
  CompileOptions options = options_of(kTwoLayers, GraphMode::kTrain);
  const auto labels_of = [&] {
    const auto compiled = compile(model_of(kTwoLayers), options);
    const Graph& graph = compiled->program.graph;
    return graph.value(graph.find("labels")).type;
  };
  CHECK(labels_of() == TensorType{.dtype = DType::kI64, .shape = {5}});  // a class an example
  options.training.loss.kind = LossKind::kMse;
  CHECK(labels_of() == TensorType{.dtype = DType::kF32, .shape = {5, 3}});
}

}  // namespace trainscope::test
