// Rules and sums with mistakes are found without another engine; those of all models are right.
#include "engine/bisect/gradient_check.h"

#include <doctest/doctest.h>

#include "engine/bisect/step_start.h"
#include "engine/ir/builder.h"
#include "tests/engine/bisect/planting.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::map<std::string, Tensor> inputs_for(const Subject& subject) {
  return inputs_of({.batches = {subject.batches[0]}, .kept = {}}, 1, 0, 1e-3);
}

// The table with another rule for an op.
OpTable with_rule(std::string_view op, GradientRule rule) {
  OpTable changed;
  for (const OpDef* row : op_table().rows()) {
    OpDef copy = *row;
    if (copy.name == op) copy.gradient = rule;
    changed.add({copy});
  }
  return changed;
}

struct WrongRule {
  const char* model;
  const char* op;
  GradientRule rule;
};

ValueId times_of(const GradArgs& g, ValueId value, double factor) {
  return g.b("Mul", {value, g.b.scalar(factor, g.type(value).dtype)});
}

const WrongRule kWrongRules[] = {
    {"mlp", "Relu", [](const GradArgs& g) -> std::vector<ValueId> { return {g.dy[0]}; }},
    {"gpt2", "Tanh",
     [](const GradArgs& g) -> std::vector<ValueId> { return {times_of(g, g.dy[0], 0.5)}; }},
    {"gpt2", "Softmax",
     [](const GradArgs& g) -> std::vector<ValueId> {
       return {g.b("Mul", {g.dy[0], g.y[0]})};
     }},
    {"bert", "Erf",
     [](const GradArgs& g) -> std::vector<ValueId> {
       return {times_of(g, g.dy[0], 1.1283791670955126)};
     }},
    {"bert", "Div",
     [](const GradArgs& g) -> std::vector<ValueId> {
       return {times_of(g, g.b("Div", {g.dy[0], g.x[1]}), 2.0), kNoValue};
     }},
};

// x [2,4] to y by `nodes`, with weights w [4,4], trained by the squared error.
Subject skip_subject(const std::string& nodes, bool straight_through = false) {
  const OnnxModel of = model(
      "(float[2,4] x) => (float[2,4] y) <float[4,4] w = {1, -2, 3, 0.5, 2, 1, -1, 0.25, 0.5, "
      "0.125, 1, -3, -1, 2, 0.75, 1}, float half = {0.5}, bool train = {1}> { " +
      nodes + " }");
  CompileOptions options;
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  options.training.straight_through = straight_through;
  const UnfusedStep step(of, options);
  NamedTensors batch;
  for (const auto& [name, tensor] : random_inputs(step.graph(), 1)) {
    if (name == "x" || name == "labels") batch.emplace(name, tensor);
  }
  return Subject(of, options, {batch});
}

}  // namespace

TEST_CASE("gradients: rules and sums of all models are right") {
  for (const std::string model : {"gpt2", "bert", "resnet18", "mlp", "lenet", "llama"}) {
    CAPTURE(model);
    const Subject subject(model);
    const GradientCheck check = check_gradients(
        subject.defined.truth(), subject.defined.truth().graph(), op_table(), inputs_for(subject));
    for (const LocalFault& fault : check.faults) {
      FAIL_CHECK(fault.key << " of " << fault.node << ": " << fault.error << " " << fault.cause);
    }
    CHECK(check.nodes > 5);
    CHECK(check.sums > 10);
    MESSAGE(model, ": ", check.nodes, " nodes, ", check.sums, " sums, ", check.kinks, " kinks");
  }
}

// The value that such a node reads has a gradient that is more than what tested nodes give it.
TEST_CASE("gradients: readers without a test of their rule are no missing edge") {
  const Subject subjects[] = {
      skip_subject("a = MatMul(x, w)  b = Dropout(a, half, train)  y = Add(a, b)"),
      skip_subject("a = MatMul(x, w)  b = Round(a)  y = Add(a, b)", true)};
  for (const Subject& subject : subjects) {
    const GradientCheck check = check_gradients(
        subject.defined.truth(), subject.defined.truth().graph(), op_table(), inputs_for(subject));
    for (const LocalFault& fault : check.faults) {
      FAIL_CHECK(fault.key << " of " << fault.node << ": " << fault.error << " " << fault.cause);
    }
    CHECK(check.nodes >= 2);
    CHECK(check.sums >= 2);
  }
}

TEST_CASE("gradients: a wrong rule is named by the adjoint test") {
  for (const WrongRule& wrong : kWrongRules) {
    CAPTURE(std::string(wrong.model));
    CAPTURE(std::string(wrong.op));
    const Subject subject(wrong.model);
    const OpTable ops = with_rule(wrong.op, wrong.rule);
    const GradientCheck check = check_gradients(
        subject.defined.truth(), subject.defined.truth().graph(), ops, inputs_for(subject));
    bool named = false;
    for (const LocalFault& fault : check.faults) {
      named = named || (fault.op == wrong.op && fault.cause.find("direction") != std::string::npos);
      CHECK((fault.op == wrong.op || fault.cause.find("direction") == std::string::npos));
    }
    CHECK(named);
  }
}

}  // namespace trainscope::test
