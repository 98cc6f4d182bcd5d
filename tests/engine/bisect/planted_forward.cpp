// Mistakes of the forward phase.
#include "tests/engine/bisect/planted_faults.h"

namespace trainscope::test {
namespace {

Expected op(std::string node) { return {.kind = FaultKind::kOp, .node = std::move(node)}; }

Expected norm_epsilon(Planter& p) {
  const NodeId norm = p.node("LayerNormalization");
  p.set(norm, "epsilon", 1e-6);
  return op(p.name(norm));
}

Expected erf_for_tanh(Planter& p) {
  const NodeId tanh = p.node("Tanh");
  p.set_op(tanh, "Erf");
  return op(p.name(tanh));
}

Expected tanh_for_erf(Planter& p) {
  const NodeId erf = p.node("Erf", 1);
  p.set_op(erf, "Tanh");
  return op(p.name(erf));
}

Expected softmax_axis(Planter& p) {
  const NodeId softmax = p.node("Softmax", 1);
  p.set(softmax, "axis", std::int64_t{2});
  return op(p.name(softmax));
}

// Token i is given the place of token i - 1.
Expected position_off_by_one(Planter& p) {
  const NodeId lookup = p.node("Gather", 1);
  p.change_input(lookup, 1, [](Builder& b, ValueId places) {
    const ValueId one = b.constant(Tensor::scalar<std::int64_t>(1));
    const ValueId zero = b.constant(Tensor::scalar<std::int64_t>(0));
    return b("Max", {b("Sub", {places, one}), zero});
  });
  return op(p.name(lookup));
}

Expected bias_left_out(Planter& p) {
  const NodeId add = p.node("Add", 1);
  p.remake(add, [&](Builder& b, const std::vector<ValueId>& x) {
    const bool first = p.graph().value(x[0]).kind == ValueKind::kParameter;
    return b("Identity", {x[first ? 1 : 0]});
  });
  return op(p.name(add));
}

Expected scores_scaled(Planter& p) {
  const NodeId product = p.node("MatMul", 1);
  p.transform(p.output(product), [](Builder& b, ValueId x) { return times(b, x, 1.25); });
  return op(p.name(product));
}

Expected mask_upside_down(Planter& p) {
  const NodeId where = p.node("Where");
  p.swap_inputs(where, 1, 2);
  return op(p.name(where));
}

Expected operands_swapped(Planter& p) {
  const NodeId sub = p.node("Sub");
  p.swap_inputs(sub, 0, 1);
  return op(p.name(sub));
}

Expected divided_by_the_square(Planter& p) {
  const NodeId div = p.node("Div");
  p.change_input(div, 1, [](Builder& b, ValueId x) { return b("Mul", {x, x}); });
  return op(p.name(div));
}

Expected batch_norm_epsilon(Planter& p) {
  const NodeId norm = p.node("SampleBatchNormalization", 3);
  p.set(norm, "epsilon", 1e-3);
  return op(p.name(norm));
}

Expected kernel_upside_down(Planter& p) {
  const NodeId conv = p.node("Conv", 4);
  p.change_input(conv, 1, [](Builder& b, ValueId w) {
    const ValueId begin = b.ints({-1, -1});
    const ValueId end = b.ints({-100, -100});
    return b("Slice", {w, begin, end, b.ints({2, 3}), b.ints({-1, -1})});
  });
  return op(p.name(conv));
}

Expected pool_pads(Planter& p) {
  const NodeId pool = p.node("MaxPool");
  p.set(pool, "pads", Ints{0, 0, 2, 2});
  return op(p.name(pool));
}

Expected sum_for_mean(Planter& p) {
  const NodeId pool = p.node("ReduceMean");
  p.transform(p.output(pool), [](Builder& b, ValueId x) { return times(b, x, 4.0); });
  return op(p.name(pool));
}

Expected leaky_relu(Planter& p) {
  const NodeId relu = p.node("Relu", 2);
  p.remake(relu, [](Builder& b, const std::vector<ValueId>& x) {
    return b("LeakyRelu", {x[0]}, {{"alpha", 0.01}});
  });
  return op(p.name(relu));
}

Expected shortcut_left_out(Planter& p) {
  const NodeId add = p.node("Add", 2);
  p.remake(add, [](Builder& b, const std::vector<ValueId>& x) { return b("Identity", {x[0]}); });
  return op(p.name(add));
}

Expected statistics_momentum(Planter& p) {
  const NodeId norm = p.node("SampleBatchNormalization", 2);
  p.set(norm, "momentum", 0.8);
  return {.kind = FaultKind::kState, .node = p.name(norm)};
}

Expected statistics_of_the_population(Planter& p) {
  const NodeId norm = p.node("SampleBatchNormalization", 5);
  p.set_op(norm, "BatchNormalization");
  return {.kind = FaultKind::kState, .node = p.name(norm)};
}

Expected stale_statistics(Planter& p) {
  const NodeId norm = p.node("SampleBatchNormalization", 1);
  const Node& node = p.graph().node(norm);
  p.forget_update(p.graph().value(node.inputs[3]).name);
  return {.kind = FaultKind::kState, .node = p.name(norm)};
}

Expected gemm_alpha(Planter& p) {
  const NodeId gemm = p.node("Gemm", 1);
  p.set(gemm, "alpha", 0.5);
  return op(p.name(gemm));
}

Expected gemm_without_bias(Planter& p) {
  const NodeId gemm = p.node("Gemm", 2);
  p.change_input(gemm, 2, [](Builder& b, ValueId x) { return times(b, x, 0.0); });
  return op(p.name(gemm));
}

Expected relu_left_out(Planter& p) {
  const NodeId relu = p.node("Relu");
  p.set_op(relu, "Identity");
  return op(p.name(relu));
}

Expected sum_of_losses(Planter& p) {
  const NodeId loss = p.node("CrossEntropy");
  p.transform(p.output(loss), [](Builder& b, ValueId x) { return times(b, x, 16.0); });
  return op(p.name(loss));
}

Expected overflow(Planter& p) {
  const NodeId gemm = p.node("Gemm", 1);
  p.transform(p.output(gemm), [](Builder& b, ValueId x) {
    return times(b, times(b, times(b, x, 1e30), 1e30), 1e-30);
  });
  return {.kind = FaultKind::kOverflow, .node = p.name(gemm)};
}

constexpr Fault kFaults[] = {
    {"gpt2", "layer norm's epsilon", norm_epsilon},
    {"gpt2", "erf for tanh", erf_for_tanh},
    {"gpt2", "softmax along another axis", softmax_axis},
    {"gpt2", "positions off by one", position_off_by_one},
    {"gpt2", "a bias left out", bias_left_out},
    {"gpt2", "a product scaled", scores_scaled},
    {"gpt2", "the mask upside down", mask_upside_down},
    {"bert", "layer norm's epsilon", norm_epsilon},
    {"bert", "tanh for erf", tanh_for_erf},
    {"bert", "softmax along another axis", softmax_axis},
    {"bert", "operands swapped", operands_swapped},
    {"bert", "divided by the square", divided_by_the_square},
    {"resnet18", "batch norm's epsilon", batch_norm_epsilon},
    {"resnet18", "a kernel upside down", kernel_upside_down},
    {"resnet18", "padding on one side", pool_pads},
    {"resnet18", "a sum for a mean", sum_for_mean},
    {"resnet18", "leaky relu", leaky_relu},
    {"resnet18", "a shortcut left out", shortcut_left_out},
    {"resnet18", "momentum of statistics", statistics_momentum},
    {"resnet18", "variance of the population", statistics_of_the_population},
    {"resnet18", "stale statistics", stale_statistics},
    {"mlp", "alpha of a product", gemm_alpha},
    {"mlp", "a bias left out", gemm_without_bias},
    {"mlp", "relu left out", relu_left_out},
    {"mlp", "a sum of losses for their mean", sum_of_losses},
    {"mlp", "infinities on the way", overflow},
};

}  // namespace

std::span<const Fault> forward_faults() { return kFaults; }

}  // namespace trainscope::test
