// Mistakes of the backward phase and of the update.
#include "tests/engine/bisect/planted_faults.h"

namespace trainscope::test {
namespace {

Expected contribution_missing(Planter& p) {
  const NodeId sum = p.gradient_sum(1);
  const std::string reader = p.name(sum);
  p.remake(sum, [](Builder& b, const std::vector<ValueId>& x) { return b("Identity", {x[0]}); });
  return {.kind = FaultKind::kGraph, .node = reader};
}

Expected contribution_twice(Planter& p) {
  const NodeId sum = p.gradient_sum(2);
  const std::string reader = p.name(sum);
  p.remake(sum, [](Builder& b, const std::vector<ValueId>& x) {
    return b("Add", {b("Add", {x[0], x[1]}), x[1]});
  });
  return {.kind = FaultKind::kGraph, .node = reader};
}

std::string operand(Planter& p, NodeId node, std::size_t input) {
  return p.graph().value(p.graph().node(node).inputs[input]).name;
}

Expected bias_gradient_dropped(Planter& p) {
  const NodeId gemm = p.node("Gemm", 1);
  const std::string bias = operand(p, gemm, 2);
  p.transform(p.gradient_of(bias), [](Builder& b, ValueId x) { return times(b, x, 0.0); });
  return {.kind = FaultKind::kGraph, .node = p.name(gemm), .key = "grad:" + bias};
}

Expected bias_gradient_is_a_mean(Planter& p) {
  const NodeId gemm = p.node("Gemm", 0);
  const std::string bias = operand(p, gemm, 2);
  p.transform(p.gradient_of(bias), [](Builder& b, ValueId x) { return times(b, x, 1.0 / 16.0); });
  return {.kind = FaultKind::kOp, .node = p.name(gemm), .key = "grad:" + bias};
}

Expected norm_bias_gradient_dropped(Planter& p) {
  const NodeId norm = p.node("LayerNormalization", 1);
  const std::string bias = operand(p, norm, 2);
  p.transform(p.gradient_of(bias), [](Builder& b, ValueId x) { return times(b, x, 0.0); });
  return {.kind = FaultKind::kGraph, .node = p.name(norm), .key = "grad:" + bias};
}

Expected gradient_of_the_other_sign(Planter& p) {
  const NodeId conv = p.node("Conv", 3);
  const std::string weight = operand(p, conv, 1);
  p.transform(p.gradient_of(weight), [](Builder& b, ValueId x) { return times(b, x, -1.0); });
  return {.kind = FaultKind::kOp, .node = p.name(conv), .key = "grad:" + weight};
}

Expected gradient_transposed(Planter& p) {
  const NodeId conv = p.node("Conv", 2);
  const std::string weight = operand(p, conv, 1);
  p.transform(p.gradient_of(weight), [](Builder& b, ValueId x) {
    return b("Transpose", {x}, {{"perm", Ints{0, 1, 3, 2}}});
  });
  return {.kind = FaultKind::kOp, .node = p.name(conv), .key = "grad:" + weight};
}

Expected relu_passes_all(Planter& p) {
  const NodeId relu = p.node("Relu", 1);
  const NodeId gradient = p.gradient_node(relu, "ReluGrad");
  p.remake(gradient,
           [](Builder& b, const std::vector<ValueId>& x) { return b("Identity", {x[0]}); });
  return {.kind = FaultKind::kOp, .node = p.name(relu)};
}

Expected softmax_without_its_sum(Planter& p) {
  const NodeId softmax = p.node("Softmax");
  const NodeId gradient = p.gradient_node(softmax, "SoftmaxGrad");
  p.remake(gradient, [](Builder& b, const std::vector<ValueId>& x) {
    return b("Mul", {x[0], x[1]});
  });
  return {.kind = FaultKind::kOp, .node = p.name(softmax)};
}

Expected loss_gradient_of_the_sum(Planter& p) {
  const NodeId loss = p.node("CrossEntropy");
  const NodeId gradient = p.gradient_node(loss, "CrossEntropyGrad");
  p.transform(p.output(gradient), [](Builder& b, ValueId x) { return times(b, x, 60.0); });
  return {.kind = FaultKind::kOp, .node = p.name(loss)};
}

Expected pool_gradient_of_the_mean(Planter& p) {
  const NodeId pool = p.node("MaxPool");
  const NodeId gradient = p.gradient_node(pool, "MaxPoolGrad");
  p.transform(p.output(gradient), [](Builder& b, ValueId x) { return times(b, x, 0.25); });
  return {.kind = FaultKind::kOp, .node = p.name(pool)};
}

Expected norm_gradient_off(Planter& p) {
  const NodeId norm = p.node("SampleBatchNormalization", 4);
  const std::string scale = operand(p, norm, 1);
  p.transform(p.gradient_of(scale), [](Builder& b, ValueId x) {
    return b("Add", {x, b.scalar(0.01, b.type(x).dtype)});
  });
  return {.kind = FaultKind::kOp, .node = p.name(norm), .key = "grad:" + scale};
}

Expected update(std::string key = {}) {
  return {.kind = FaultKind::kOptimizer, .node = {}, .key = std::move(key)};
}

Expected no_decay(Planter& p) {
  const NodeId step = p.node("AdamWStep", 0, Phase::kUpdate);
  const Floats decay = p.graph().node(step).attributes.numbers("weight_decay");
  p.set(step, "weight_decay", Floats(decay.size(), 0.0));
  return update();
}

Expected second_beta(Planter& p) {
  p.set(p.node("AdamWStep", 0, Phase::kUpdate), "beta2", 0.95);
  return update();
}

Expected no_bias_correction(Planter& p) {
  p.set(p.node("AdamWStep", 0, Phase::kUpdate), "bias_correction", std::int64_t{0});
  return update();
}

Expected step_epsilon(Planter& p) {
  p.set(p.node("AdamWStep", 0, Phase::kUpdate), "epsilon", 1e-6);
  return update();
}

Expected decay_in_the_gradient(Planter& p) {
  p.set(p.node("AdamWStep", 0, Phase::kUpdate), "mode", std::int64_t{1});
  return update();
}

Expected no_clipping(Planter& p) {
  p.set(p.node("GradientScale", 0, Phase::kUpdate), "max_norm", 1e30);
  return update();
}

Expected twice_the_rate(Planter& p) {
  const NodeId step = p.node("SgdStep", 0, Phase::kUpdate);
  const int inputs = static_cast<int>(p.graph().node(step).inputs.size());
  p.change_input(step, inputs - 3, [](Builder& b, ValueId x) { return times(b, x, 2.0); });
  return update();
}

Expected nesterov(Planter& p) {
  p.set(p.node("SgdStep", 0, Phase::kUpdate), "nesterov", std::int64_t{1});
  return update();
}

Expected parameter_forgotten(Planter& p) {
  const std::string name = operand(p, p.node("Gemm", 1), 1);
  p.forget_update(name);
  return update("param:" + name);
}

constexpr Fault kBackward[] = {
    {"gpt2", "a contribution missing", contribution_missing},
    {"gpt2", "a contribution counted twice", contribution_twice},
    {"gpt2", "softmax without its sum", softmax_without_its_sum},
    {"gpt2", "a bias gradient dropped", norm_bias_gradient_dropped},
    {"gpt2", "the loss's gradient of the sum", loss_gradient_of_the_sum},
    {"bert", "a contribution missing", contribution_missing},
    {"bert", "a contribution counted twice", contribution_twice},
    {"bert", "a bias gradient dropped", norm_bias_gradient_dropped},
    {"resnet18", "a contribution missing", contribution_missing},
    {"resnet18", "a contribution counted twice", contribution_twice},
    {"resnet18", "a gradient of the other sign", gradient_of_the_other_sign},
    {"resnet18", "a gradient transposed", gradient_transposed},
    {"resnet18", "relu passes all", relu_passes_all},
    {"resnet18", "a pool's gradient spread", pool_gradient_of_the_mean},
    {"resnet18", "a norm's scale off", norm_gradient_off},
    {"mlp", "a bias gradient dropped", bias_gradient_dropped},
    {"mlp", "a bias gradient is a mean", bias_gradient_is_a_mean},
    {"mlp", "relu passes all", relu_passes_all},
    {"mlp", "the loss's gradient of the sum", loss_gradient_of_the_sum},
};

constexpr Fault kUpdate[] = {
    {"gpt2", "no weight decay", no_decay},
    {"gpt2", "another beta 2", second_beta},
    {"bert", "no bias correction", no_bias_correction},
    {"bert", "another epsilon", step_epsilon},
    {"mlp", "decay in the gradient", decay_in_the_gradient},
    {"resnet18", "no clipping", no_clipping},
    {"mlp", "twice the rate", twice_the_rate, OptimizerKind::kSgd},
    {"mlp", "nesterov", nesterov, OptimizerKind::kSgd},
    {"mlp", "a parameter forgotten", parameter_forgotten},
};

}  // namespace

std::span<const Fault> backward_faults() { return kBackward; }
std::span<const Fault> update_faults() { return kUpdate; }

}  // namespace trainscope::test
