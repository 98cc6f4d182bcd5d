// chunked_loss: the same loss and gradients as in one piece, refusals, memory.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

TrainingOptions training(LossOptions loss, std::int64_t chunks) {
  TrainingOptions options;
  options.mode = GraphMode::kGradients;
  options.loss = std::move(loss);
  options.loss_chunks = chunks;
  return options;
}

const std::vector<std::string> kPasses = {"loss", "chunked_loss", "decompose", "differentiate",
                                          "dead_code"};

// Class weights named c are not trained.
Graph imported(std::string_view text) {
  ImportOptions options;
  if (contains(text, "float[5] c = ")) options.frozen = {"c"};
  return graph(text, options);
}

// Loss and gradients on random inputs, the labels as given.
Tensors results(std::string_view text, const LossOptions& loss, std::int64_t chunks,
                const std::vector<std::int64_t>& labels) {
  const Graph g = passed(imported(text), kPasses, training(loss, chunks));
  Tensors inputs = random_inputs(g, 7);
  Tensor& given = inputs.at("labels");
  given = Tensor::of<std::int64_t>(given.type().shape, labels);
  Tensors all = results_of(g, inputs);
  std::erase_if(all, [](const auto& entry) {
    return entry.first != "loss" && !entry.first.starts_with("d ");
  });
  return all;
}

// Largest difference between a loss in so many chunks and in one piece.
double change(std::string_view text, const LossOptions& loss, std::int64_t chunks,
              const std::vector<std::int64_t>& labels) {
  const Tensors whole = results(text, loss, 1, labels);
  REQUIRE(whole.size() > 1);
  return difference(results(text, loss, chunks, labels), whole);
}

constexpr double kRounding = 2e-6;

constexpr std::string_view kMatMul =
    "(float[2,3,4] x) => (float[2,3,5] y) <float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},"
    " float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}>"
    " { a = MatMul(x, v)  h = Tanh(a)  y = MatMul(h, w) }";
constexpr std::string_view kBias =
    "(float[6,4] x) => (float[6,5] y) <float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2},"
    " float[5] b = {1,2,3,4,5}> { h = Tanh(x)  s = MatMul(h, w)  y = Add(b, s) }";
constexpr std::string_view kGemm =
    "(float[6,4] x) => (float[6,5] y) <float[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2},"
    " float[5] b = {1,2,3,4,5}> { h = Tanh(x)  y = Gemm<transB = 1>(h, w, b) }";

const std::vector<std::int64_t> kLabels = {0, 4, 2, 1, 1, 3};
const std::vector<std::int64_t> kSomeIgnored = {0, -100, -100, -100, 1, 3};

// A model with its own loss, as PyTorch exports one.
std::string own_loss(std::string_view attributes, std::string_view inputs) {
  return "(float[2,3,4] x, int64[6] labels) => (float loss) <float[4,5] w = "
         "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, int64[2] rows = {-1, 5}, "
         "float[5] c = {0.5,1,2,0.25,0}> { h = Tanh(x)  s = MatMul(h, w)  y = Reshape(s, rows) "
         "loss = SoftmaxCrossEntropyLoss<" +
         std::string(attributes) + ">(" + std::string(inputs) + ") }";
}
const LossOptions kOwn{.kind = LossKind::kOutput, .output = "loss"};

std::string refused(std::string_view text, const LossOptions& loss, std::int64_t chunks) {
  const std::optional<Error> error = error_of([&] {
    passed(graph(text), {"loss", "chunked_loss"}, training(loss, chunks));
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUsage);
  return error->message();
}

}  // namespace

TEST_CASE("chunked_loss: loss and gradients of a linear layer, a bias, a Gemm") {
  for (std::string_view text : {kMatMul, kBias, kGemm}) {
    for (std::int64_t chunks : {2, 4, 6}) {
      CAPTURE(text);
      CAPTURE(chunks);
      CHECK(change(text, {}, chunks, kLabels) < kRounding);
      CHECK(change(text, {}, chunks, kSomeIgnored) < kRounding);  // a chunk without any label
      CHECK(change(text, {.class_weights = {0.5, 1, 2, 0.25, 0}}, chunks, kSomeIgnored) <
            kRounding);
      CHECK(change(text, {.label_smoothing = 0.1}, chunks, kSomeIgnored) < kRounding);
      CHECK(change(text, {.class_weights = {0.5, 1, 2, 0.25, 0}, .label_smoothing = 0.1}, chunks,
                   kSomeIgnored) < kRounding);
    }
  }
}

TEST_CASE("chunked_loss: losses of ONNX by mean and sum, with weights and ignored labels") {
  for (std::int64_t chunks : {2, 5}) {
    for (std::string_view attributes :
         {"reduction = \"mean\"", "reduction = \"sum\"", "ignore_index = 1",
          "reduction = \"sum\", ignore_index = 1"}) {
      for (std::string_view inputs : {"y, labels", "y, labels, c"}) {
        CAPTURE(attributes);
        CAPTURE(inputs);
        const std::string text = own_loss(attributes, inputs);

        CHECK(change(text, kOwn, chunks, kLabels) < kRounding);
      }
    }
  }
}

TEST_CASE("chunked_loss: all labels ignored, or one outside, is NaN as in one piece") {
  const auto loss_of = [](const std::vector<std::int64_t>& labels) {
    return static_cast<double>(results(kBias, {}, 3, labels).at("loss").values<float>()[0]);
  };
  CHECK(std::isnan(loss_of({-100, -100, -100, -100, -100, -100})));
  CHECK(std::isnan(loss_of({0, 1, 2, 3, 4, 5})));
  CHECK(!std::isnan(loss_of({0, 1, 2, 3, 4, -100})));
}

TEST_CASE("chunked_loss: one chunk changes nothing, a second run neither") {
  const Graph with_loss = passed(graph(kBias), {"loss"}, training({}, 1));
  CHECK(!changes(with_loss, "chunked_loss", training({}, 1)));
  CHECK(changes(with_loss, "chunked_loss", training({}, 2)));
  const Graph split = passed(graph(kBias), {"loss", "chunked_loss"}, training({}, 2));
  CHECK(!changes(split, "chunked_loss", training({}, 2)));
  CHECK(count_ops(split, "CrossEntropy") == 2);
  CHECK(count_ops(split, "MatMul") == 2);
  TrainingOptions evaluation = training({}, 2);
  evaluation.mode = GraphMode::kEvaluate;
  CHECK(!changes(with_loss, "chunked_loss", evaluation));
}

TEST_CASE("chunked_loss: a chunk's scores are gone before the next chunk's are made") {
  const Graph g = passed(graph(kGemm), kPasses, training({}, 3));
  std::string events;
  for (NodeId id : g.order()) {
    const std::string_view op = g.node(id).op->name;
    if (op == "Gemm") events += "s";
    if (op == "CrossEntropyGrad") events += "g";
  }
  CHECK(events == "sgsgsg");
}

TEST_CASE("chunked_loss: what it cannot split is refused with the reason") {
  CHECK(contains(refused(kBias, {}, 7), "in 7 chunks: 'y' has 6 rows"));
  CHECK(contains(refused(kBias, {.kind = LossKind::kMse}, 2), "is no cross entropy"));
  CHECK(contains(refused(kBias, {.class_axis = 0}, 2), "are not the last axis"));
  constexpr std::string_view kReluBetween =
      "(float[6,4] x) => (float[6,5] y) <float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}>"
      " { s = MatMul(x, w)  y = Relu(s) }";
  CHECK(contains(refused(kReluBetween, {}, 2), "stands between the linear layer and the loss"));
  constexpr std::string_view kReadTwice =
      "(float[6,4] x) => (float[6,5] y, float[6,5] z) <float[4,5] w = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}> { y = MatMul(x, w)  z = Relu(y) }";
  CHECK(contains(refused(kReadTwice, {.output = "y"}, 2), "'y' is also read by Relu"));
  CHECK(contains(refused(own_loss("reduction = \"sum\"", "y, labels, c"), kOwn, 2),
                 "the class weights 'c' are trained"));
  CHECK(contains(refused("(float[6,5] x) => (float[6,5] y) { y = Identity(x) }", {}, 2),
                 "its scores 'x' are an input"));
}

}  // namespace trainscope::test
