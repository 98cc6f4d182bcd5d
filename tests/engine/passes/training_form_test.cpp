// training_form: dropout and batch norm in each mode, from either form.
#include <doctest/doctest.h>

#include "engine/ir/well_known.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

TrainingOptions in_mode(GraphMode mode, std::uint64_t seed = 7) {
  TrainingOptions options;
  options.mode = mode;
  options.seed = seed;
  return options;
}

constexpr GraphMode kAllModes[] = {GraphMode::kInference, GraphMode::kEvaluate,
                                   GraphMode::kGradients, GraphMode::kTrain};

bool trains(GraphMode mode) { return mode == GraphMode::kGradients || mode == GraphMode::kTrain; }

Graph formed(std::string_view text, GraphMode mode, const ImportOptions& import = {}) {
  Graph g = passed(graph(text, import), {"training_form"}, in_mode(mode));
  CHECK_FALSE(changes(g, "training_form", in_mode(mode)));
  return g;
}

// Two dropouts of different ratios and one without any.
constexpr const char* kDropouts =
    "(float[8] x) => (float[8] y) <float quarter = {0.25}, float zero = {0}, bool t = {1}>"
    "{ a, m = Dropout(x, quarter, t)  b = Dropout(a, , t)  y = Dropout(b, zero, t) }";

// y = batch norm of x [2,3]; `rest` is the node's attributes and outputs.
std::string batch_norm(std::string_view outputs, std::string_view attributes) {
  return "(float[2,3] x) => (float[2,3] y) <float[3] scale = {1, 2, 3}, float[3] bias = {0, 1, 2},"
         " float[3] mean = {5, 5, 5}, float[3] var = {4, 4, 4}>"
         "{ h" +
         std::string(outputs) + " = BatchNormalization <" + std::string(attributes) +
         "> (x, scale, bias, mean, var)  y = Neg(h) }";
}

}  // namespace

TEST_CASE("training_form: training draws a mask per dropout from seed, stream and step") {
  for (GraphMode mode : {GraphMode::kGradients, GraphMode::kTrain}) {
    const Graph g = formed(kDropouts, mode, {.frozen = {"*"}});
    const std::string lines = node_lines(g);
    CHECK(contains(lines,
                   "ts.RandomDropout(x, ai.trainscope.random_step) ratio=0.25 seed=7 stream=0\n"));
    CHECK(contains(lines, ", ai.trainscope.random_step) ratio=0.5 seed=7 stream=1\n"));
    CHECK(contains(lines, "y f32[8] = Identity("));
    CHECK(count_ops(g, "RandomDropout") == 2);
    CHECK(count_ops(g, "Dropout") == 0);
    CHECK(g.find(kRandomStepInput) != kNoValue);
    CHECK(g.inputs.size() == 2);
  }
}

TEST_CASE("training_form: random ops draw from streams of their own, in training by the step") {
  constexpr const char* kText =
      "(float[8] x) => (float[8] y)"
      "{ a = RandomNormalLike(x)  b = RandomUniformLike(x)  c = Bernoulli(x)"
      "  d = Add(a, b)  e = Add(c, d)  y = Mul(x, e) }";
  for (GraphMode mode : {GraphMode::kGradients, GraphMode::kTrain}) {
    const Graph g = formed(kText, mode);
    const std::string lines = node_lines(g);
    CHECK(contains(lines,
                   "ts.NormalNumbers(ai.trainscope.random_step) dtype=1 seed=7 shape={8} "
                   "stream=4294967296\n"));
    CHECK(contains(lines,
                   "ts.UniformNumbers(ai.trainscope.random_step) dtype=1 seed=7 shape={8} "
                   "stream=4294967297\n"));
    CHECK(contains(lines, "stream=4294967298\n"));
    CHECK(count_ops(g, "UniformNumbers") == 2);
    CHECK(count_ops(g, "Bernoulli") == 0);
  }
  const Graph g = formed(kText, GraphMode::kInference);
  CHECK(g.find(kRandomStepInput) == kNoValue);
  CHECK(count_ops(g, "NormalNumbers") == 1);
  CHECK(contains(node_lines(g), "stream=4294967298\n"));
}

TEST_CASE("training_form: a ratio that is no fraction is refused by the node's name") {
  for (const char* ratio : {"1", "-0.25", "2"}) {
    CAPTURE(ratio);
    const std::string text = std::string("(float[4] x) => (float[4] y) <float r = {") + ratio +
                             "}> { y = Dropout(x, r) }";
    const std::string refusal = refusal_of([&] {
      passed(graph(text, {.frozen = {"r"}}), {"training_form"}, in_mode(GraphMode::kTrain));
    });
    CHECK(contains(refusal, "Dropout 'Dropout_0': the ratio is "));
  }
}

TEST_CASE("training_form: evaluation and inference drop nothing") {
  for (GraphMode mode : {GraphMode::kInference, GraphMode::kEvaluate}) {
    const Graph g = formed(kDropouts, mode, {.frozen = {"*"}});
    CHECK(count_ops(g, "RandomDropout") == 0);
    CHECK(count_ops(g, "Dropout") == 0);
    CHECK(g.find(kRandomStepInput) == kNoValue);
    const Tensors inputs = random_inputs(g, 1);
    CHECK(difference(outputs_of(g, inputs).at("y"), inputs.at("x")) == 0.0);
  }
}

TEST_CASE("training_form: a mask that is read is all true outside training, refused inside") {
  constexpr const char* kText =
      "(float[4] x) => (float[4] y) <float r = {0.5}, bool t = {1}>"
      "{ a, m = Dropout(x, r, t)  y = Where(m, a, x) }";
  const Graph g = formed(kText, GraphMode::kInference, {.frozen = {"*"}});
  const Tensors inputs = random_inputs(g, 1);
  CHECK(difference(outputs_of(g, inputs).at("y"), inputs.at("x")) == 0.0);
  const std::string refusal = refusal_of([&] {
    passed(graph(kText, {.frozen = {"*"}}), {"training_form"}, in_mode(GraphMode::kTrain));
  });
  CHECK(contains(refusal, "its mask is read"));
  CHECK(contains(refusal, "in pass training_form"));
}

TEST_CASE("training_form: PyTorch's batch norm keeps its running variance of the sample") {
  const auto read = [](std::string_view form) {
    return OnnxModel::parse_text(
        "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"pytorch\"> g " +
        batch_norm("", form));
  };
  for (const char* form : {"momentum = 0.8", "momentum = 0.8, training_mode = 1"}) {
    CAPTURE(form);
    const Graph model = graph(read(form));
    const Graph trained = passed(model, {"training_form"}, in_mode(GraphMode::kTrain));
    CHECK_FALSE(changes(trained, "training_form", in_mode(GraphMode::kTrain)));
    CHECK(count_ops(trained, "SampleBatchNormalization") == 1);
    CHECK(trained.updates.size() == 2);
    const Graph used = passed(model, {"training_form"}, in_mode(GraphMode::kInference));
    CHECK(count_ops(used, "BatchNormalization") == 1);
  }
}

TEST_CASE("training_form: batch norm trains on batch statistics and updates the running ones") {
  const std::string forms[] = {batch_norm("", "epsilon = 0.001, momentum = 0.8"),
                               batch_norm(", m, v", "momentum = 0.8, training_mode = 1"),
                               batch_norm("", "momentum = 0.8, training_mode = 1")};
  for (const std::string& text : forms) {
    CAPTURE(text);
    for (GraphMode mode : {GraphMode::kGradients, GraphMode::kTrain}) {
      const Graph g = formed(text, mode);
      REQUIRE(g.updates.size() == 2);
      CHECK(g.value(g.updates[0].state).name == "mean");
      CHECK(g.value(g.updates[1].state).name == "var");
      const Tensors results = results_of(g, {{"x", floats({2, 3}, {1, 2, 3, 3, 6, 3})}});
      // Batch means 2, 4, 3 and population variances 1, 4, 0.
      CHECK(difference(results.at("next mean"), floats({3}, {4.4F, 4.8F, 4.6F})) < 1e-6);
      CHECK(difference(results.at("next var"), floats({3}, {3.4F, 4.0F, 3.2F})) < 1e-6);
    }
  }
}

TEST_CASE("training_form: batch norms that share running statistics update them in turn") {
  constexpr const char* kText =
      "(float[2,3] x) => (float[2,3] y) <float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2},"
      " float[3] mean = {5, 5, 5}, float[3] var = {4, 4, 4}>"
      "{ h = BatchNormalization <momentum = 0.8> (x, s, b, mean, var)  n = Neg(x)"
      "  k = BatchNormalization <momentum = 0.8> (n, s, b, mean, var)  y = Add(h, k) }";
  const Graph g = formed(kText, GraphMode::kTrain);
  REQUIRE(g.updates.size() == 2);
  const Tensors results = results_of(g, {{"x", floats({2, 3}, {1, 2, 3, 3, 6, 3})}});
  // After the first layer as above; then the means -2, -4, -3 and the same variances.
  CHECK(difference(results.at("next mean"), floats({3}, {3.12F, 3.04F, 3.08F})) < 1e-6);
  CHECK(difference(results.at("next var"), floats({3}, {2.92F, 4.0F, 2.56F})) < 1e-6);
}

TEST_CASE("training_form: batch norm infers from the running statistics") {
  const std::string forms[] = {batch_norm("", "epsilon = 0.0"),
                               batch_norm(", m, v", "epsilon = 0.0, training_mode = 1")};
  for (const std::string& text : forms) {
    CAPTURE(text);
    for (GraphMode mode : {GraphMode::kInference, GraphMode::kEvaluate}) {
      const Graph g = formed(text, mode);
      CHECK(g.updates.empty());
      const Tensors results = results_of(g, {{"x", floats({2, 3}, {7, 7, 7, 5, 5, 3})}});
      CHECK(difference(results.at("y"), floats({2, 3}, {-1, -3, -5, 0, -1, 1})) < 1e-6);
    }
  }
}

TEST_CASE("training_form: asked to, training leaves the running statistics as they are") {
  TrainingOptions options = in_mode(GraphMode::kTrain);
  options.running_statistics = true;
  const std::string forms[] = {batch_norm("", "epsilon = 0.0"),
                               batch_norm(", m, v", "epsilon = 0.0, training_mode = 1")};
  for (const std::string& text : forms) {
    CAPTURE(text);
    const Graph g = passed(graph(text), {"training_form"}, options);
    CHECK(g.updates.empty());
    const Tensors results = results_of(g, {{"x", floats({2, 3}, {7, 7, 7, 5, 5, 3})}});
    CHECK(difference(results.at("y"), floats({2, 3}, {-1, -3, -5, 0, -1, 1})) < 1e-6);
  }
}

TEST_CASE("training_form: batch statistics that a model reads cannot be had in inference") {
  const std::string text =
      "(float[2,3] x) => (float[2,3] y) <float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2},"
      " float[3] mean = {5, 5, 5}, float[3] var = {4, 4, 4}>"
      "{ h, m, v = BatchNormalization <training_mode = 1> (x, s, b, mean, var)  y = Add(h, m) }";
  const std::string refusal =
      refusal_of([&] { passed(graph(text), {"training_form"}, in_mode(GraphMode::kInference)); });
  CHECK(contains(refusal, "output 1 does not exist in inference"));
  CHECK(formed(text, GraphMode::kTrain).updates.size() == 2);
}

TEST_CASE("training_form: a graph without dropout and batch norm is left alone") {
  for (GraphMode mode : kAllModes) {
    CHECK_FALSE(changes(graph("(float[2] x) => (float[2] y) { y = Neg(x) }"), "training_form",
                        in_mode(mode)));
    CHECK(trains(mode) == (formed(kDropouts, mode, {.frozen = {"*"}}).inputs.size() == 2));
  }
}

}  // namespace trainscope::test
