// accumulate and optimizer_step against the formulas written out, in f64.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/engine/autodiff/optimizer_run.h"

namespace trainscope::test {
namespace {

struct Moments {
  std::vector<double> m;
  std::vector<double> v;
};

// One parameter's AdamW step as PyTorch defines it.
std::vector<double> adamw(std::vector<double> p, const std::vector<double>& g, Moments& moments,
                          const OptimizerOptions& o, double decay, double rate, std::int64_t step) {
  moments.m.resize(p.size(), 0.0);
  moments.v.resize(p.size(), 0.0);
  const double t = static_cast<double>(step);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] *= 1.0 - rate * decay;
    moments.m[i] = o.beta1 * moments.m[i] + (1.0 - o.beta1) * g[i];
    moments.v[i] = o.beta2 * moments.v[i] + (1.0 - o.beta2) * g[i] * g[i];
    const double m = moments.m[i] / (1.0 - std::pow(o.beta1, t));
    const double v = moments.v[i] / (1.0 - std::pow(o.beta2, t));
    p[i] -= rate * m / (std::sqrt(v) + o.epsilon);
  }
  return p;
}

std::vector<double> sgd(std::vector<double> p, const std::vector<double>& g,
                        std::vector<double>& buffer, const OptimizerOptions& o, double rate,
                        std::int64_t step) {
  buffer.resize(p.size(), 0.0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double d = g[i] + o.weight_decay * p[i];
    buffer[i] = step == 1 ? d : o.momentum * buffer[i] + d;
    p[i] -= rate * (o.momentum == 0.0 ? d : buffer[i]);
  }
  return p;
}

double norm_of(const Run& run) {
  double sum = 0.0;
  for (const std::string name : {"w", "b"}) {
    for (double g : run.gradient(name)) sum += g * g;
  }
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("optimizer_step: SGD with and without momentum and decay, over several steps") {
  for (const double momentum : {0.0, 0.9}) {
    const OptimizerOptions o{
        .kind = OptimizerKind::kSgd, .momentum = momentum, .weight_decay = 0.01};
    Run run(step_graph(training(o)));
    CHECK(run.graph.values_of(ValueKind::kState).size() == (momentum == 0.0 ? 0U : 2U));
    std::map<std::string, std::vector<double>> buffers;
    for (std::int64_t step = 1; step <= 4; ++step) {
      const double rate = 0.1 / static_cast<double>(step);
      run.one(rate);
      for (const std::string name : {"w", "b"}) {
        const auto expected =
            sgd(run.value(name), run.gradient(name), buffers[name], o, rate, step);
        CHECK(worst(run.next(name), expected) < kLimit);
      }
      run.advance();
    }
  }
}

TEST_CASE("optimizer_step: AdamW over several steps, moments as states") {
  const OptimizerOptions o{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  Run run(step_graph(training(o)));
  CHECK(run.graph.find("ai.trainscope.adamw.m/w") != kNoValue);
  CHECK(run.graph.find("ai.trainscope.adamw.v/b") != kNoValue);
  std::map<std::string, Moments> moments;
  for (std::int64_t step = 1; step <= 4; ++step) {
    run.one(0.05);
    for (const std::string name : {"w", "b"}) {
      const auto expected =
          adamw(run.value(name), run.gradient(name), moments[name], o, 0.1, 0.05, step);
      CHECK(worst(run.next(name), expected) < kLimit);
      CHECK(worst(run.next("ai.trainscope.adamw.m/" + name), moments[name].m) < kLimit);
      CHECK(worst(run.next("ai.trainscope.adamw.v/" + name), moments[name].v) < kLimit);
    }
    run.advance();
  }
}

TEST_CASE("optimizer_step: decay for matrices only, groups over it, the last match wins") {
  OptimizerOptions o{.weight_decay = 0.1, .decay_matrices_only = true};
  const auto next = [&](const std::string& name) {
    Run run(step_graph(training(o)));
    run.one(0.05);
    return run.next(name);
  };
  Run plain(step_graph(training({})));
  plain.one(0.05);
  const auto with = [&](const std::string& name, double decay, double scale) {
    Moments moments;
    return adamw(plain.value(name), plain.gradient(name), moments, o, decay, 0.05 * scale, 1);
  };
  CHECK(worst(next("w"), with("w", 0.1, 1.0)) < kLimit);
  CHECK(worst(next("b"), with("b", 0.0, 1.0)) < kLimit);
  o.groups = {{.pattern = "*", .weight_decay = 0.3, .learning_rate_scale = 2.0},
              {.pattern = "w*", .weight_decay = 0.2, .learning_rate_scale = 0.5}};
  CHECK(worst(next("w"), with("w", 0.2, 0.5)) < kLimit);
  CHECK(worst(next("b"), with("b", 0.3, 2.0)) < kLimit);
  // A group that says nothing of decay leaves each parameter the decay it has without the group.
  o.groups = {{.pattern = "*", .learning_rate_scale = 2.0}};
  CHECK(worst(next("w"), with("w", 0.1, 2.0)) < kLimit);
  CHECK(worst(next("b"), with("b", 0.0, 2.0)) < kLimit);
}

TEST_CASE("optimizer_step: a group without a trained parameter is a usage error") {
  OptimizerOptions o;
  o.groups = {{.pattern = "decoder*"}};
  const std::optional<Error> error = error_of([&] { step_graph(training(o)); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(error->message() == "parameter group 'decoder*' matches no trained parameter");
}

TEST_CASE("optimizer_step: clipping scales all gradients by the global norm, and reports it") {
  for (const double max_norm : {0.01, 1000.0}) {
    const OptimizerOptions o{.kind = OptimizerKind::kSgd, .clip_norm = max_norm};
    Run run(step_graph(training(o)));
    run.one(0.5);
    const double norm = norm_of(run);
    CHECK(run.results.at(kGradientNormOutput).values<double>()[0] == doctest::Approx(norm));
    const double factor = std::min(1.0, max_norm / (norm + 1e-6));
    CHECK((factor < 1.0) == (max_norm < 1.0));
    for (const std::string name : {"w", "b"}) {
      std::vector<double> expected = run.value(name);
      const std::vector<double> g = run.gradient(name);
      for (std::size_t i = 0; i < g.size(); ++i) expected[i] -= 0.5 * factor * g[i];
      CHECK(worst(run.next(name), expected) < kLimit);
    }
  }
}

TEST_CASE("optimizer_step: gradients stay readable only on request") {
  TrainingOptions options = training({});
  CHECK(step_graph(options).gradients.size() == 2);
  options.keep_gradients = false;
  CHECK(step_graph(options).gradients.empty());
  CHECK(step_graph(options).updates.size() == 6);
}

TEST_CASE("accumulate: four micro-batches are one batch of four times the size") {
  for (const double clip : {0.0, 0.02}) {
    OptimizerOptions o{.weight_decay = 0.1, .clip_norm = clip};
    TrainingOptions options = training(o);
    Run whole(step_graph(options, 12));
    whole.one(0.05);
    options.micro_batches = 4;
    Run summed(step_graph(options, 3));
    for (const std::string name : {"w", "b"}) {
      summed.inputs.insert_or_assign(name, whole.inputs.at(name));
      // What the last step left behind must not matter.
      Tensor& sum = summed.inputs.at(kAccumulatedPrefix + name);
      for (double& element : sum.values<double>()) element = 1e6;
    }
    summed.inputs.insert_or_assign(kLearningRateInput, Tensor::scalar(0.05));
    for (std::int64_t micro_step = 0; micro_step < 4; ++micro_step) {
      summed.inputs.insert_or_assign(kMicroStepInput, Tensor::scalar(micro_step));
      for (const auto& [name, columns] : {std::pair<std::string, int>{"x", 3}, {"labels", 2}}) {
        const auto count = static_cast<std::size_t>(3 * columns);
        const auto rows = whole.inputs.at(name).values<double>().subspan(
            static_cast<std::size_t>(micro_step) * count, count);
        std::ranges::copy(rows, summed.inputs.at(name).values<double>().begin());
      }
      summed.results = results_of(summed.graph, summed.inputs);
      for (const std::string name : {"w", "b"}) {
        const std::string sum = kAccumulatedPrefix + name;
        summed.inputs.insert_or_assign(sum, summed.results.at("next " + sum));
      }
    }
    for (const std::string name : {"w", "b"}) {
      CHECK(worst(summed.next(name), whole.next(name)) < kLimit);
      CHECK(worst(summed.next(name), summed.value(name)) > 1e-4);
    }
  }
}

TEST_CASE("accumulate: one micro-batch, and other modes, need no sums") {
  TrainingOptions options = training({});
  CHECK(step_graph(options).find(kMicroStepInput) == kNoValue);
  options.micro_batches = 2;
  CHECK(step_graph(options).find(kMicroStepInput) != kNoValue);
  options.mode = GraphMode::kGradients;
  CHECK(step_graph(options).find(kMicroStepInput) == kNoValue);
}

TEST_CASE("accumulate: of several ranks each parameter has one sum over them, in the update") {
  for (const std::int64_t micro_batches : {1, 3}) {
    TrainingOptions options = training({.clip_norm = 0.5});
    options.micro_batches = micro_batches;
    options.ranks = 4;
    const Graph graph = step_graph(options);
    int sums = 0;
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op->name == "AllReduce") {
        ++sums;
        CHECK(node.phase == Phase::kUpdate);
        const NodeId producer = graph.value(node.inputs[0]).producer;
        const bool accumulated = graph.node(producer).op->name == "Accumulate";
        CHECK(accumulated == (micro_batches > 1));
      }
      if (node.op->name == "GlobalNorm") {  // of the mean over all micro-batches of all ranks
        CHECK(node.attributes.number("divisor", 0.0) == 4.0 * static_cast<double>(micro_batches));
      }
    }
    CHECK(sums == 2);
  }
}

TEST_CASE("accumulate: the sum over ranks of a known gradient is not known") {
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kOutput, .output = "loss"};
  options.training.ranks = 2;
  const Stages all = stages(
      "(float[3] x) => (float[] loss) <float[3] w = {1, 2, 3}> "
      "{ s = Add(x, w)  loss = ReduceSum<keepdims = 0>(s) }",
      options);
  CHECK(count_ops(all.back().graph, "AllReduce") == 1);  // of ones
}

}  // namespace trainscope::test
