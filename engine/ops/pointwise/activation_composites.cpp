// Op rows: activation functions that are a few simpler ops. Their gradients follow PyTorch's also
// where a function has a kink, because those of the simpler ops do.
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/pointwise/activation.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// A decomposition's input with constants of its dtype at hand.
struct Scalars {
  Builder& b;
  const Node& node;
  ValueId x = node.inputs[0];
  DType dtype = b.type(node.inputs[0]).dtype;

  ValueId number(double value) const { return b.scalar(value, dtype); }
  ValueId attribute(std::string_view name, double absent) const {
    return number(node.attributes.number(name, absent));
  }
};

// alpha * elu(x / alpha), ONNX's own definition.
Types celu_shape(const OpArgs& args) {
  require(args.attributes.number("alpha", 1.0) != 0.0, ErrorCode::kBadInput,
          "attribute alpha is 0; x is divided by it");
  return float_same_as_first(args);
}

Values celu_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const ValueId alpha = s.attribute("alpha", 1.0);
  return {b("Mul", {b("Elu", {b("Div", {s.x, alpha})}), alpha})};
}

Values selu_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const double alpha = node.attributes.number("alpha", 1.67326319217681884765625);
  const ValueId gamma = s.attribute("gamma", 1.05070102214813232421875);
  return {b("Mul", {b("Elu", {s.x}, {{"alpha", alpha}}), gamma})};
}

Values hard_sigmoid_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const ValueId scaled = b("Mul", {s.x, s.attribute("alpha", 0.2)});
  const ValueId line = b("Add", {scaled, s.attribute("beta", 0.5)});
  return {b("Clip", {line, s.number(0.0), s.number(1.0)})};
}

Values hard_swish_decomposition(Builder& b, const Node& node) {
  const ValueId x = node.inputs[0];
  const ValueId gate = b("HardSigmoid", {x}, {{"alpha", 1.0 / 6.0}, {"beta", 0.5}});
  return {b("Mul", {x, gate})};
}

// x * tanh(log(1 + e^x))
Values mish_decomposition(Builder& b, const Node& node) {
  const ValueId x = node.inputs[0];
  return {b("Mul", {x, b("Tanh", {b("Softplus", {x})})})};
}

// --- PRelu: x and slopes that broadcast to x's shape ---------------------------------------------
Types prelu_shape(const OpArgs& args) {
  const Types types = broadcast_numbers(args);
  require(types[0].shape == args.shape(0), ErrorCode::kBadInput,
          "slopes {} cannot be broadcast to x, {}", type_text(args.type(1)),
          type_text(args.type(0)));
  return types;
}

Values prelu_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const ValueId positive = b("Greater", {s.x, s.number(0.0)});
  return {b("Where", {positive, s.x, b("Mul", {s.x, node.inputs[1]})})};
}

// --- Thresholds ----------------------------------------------------------------------------------
Values thresholded_relu_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const ValueId above = b("Greater", {s.x, s.attribute("alpha", 1.0)});
  return {b("Where", {above, s.x, s.number(0.0)})};
}

Values shrink_decomposition(Builder& b, const Node& node) {
  const Scalars s{.b = b, .node = node};
  const double lambda = node.attributes.number("lambd", 0.5);
  const ValueId bias = s.attribute("bias", 0.0);
  const ValueId above = b("Greater", {s.x, s.number(lambda)});
  const ValueId below = b("Less", {s.x, s.number(-lambda)});
  const ValueId lowered = b("Where", {above, b("Sub", {s.x, bias}), s.number(0.0)});
  return {b("Where", {below, b("Add", {s.x, bias}), lowered})};
}

std::vector<OpDef> smooth_ops() {
  return {
      {.name = "Celu",
       .doc = "max(x, 0) + min(0, alpha * (e^(x / alpha) - 1))",
       .attributes = {{"alpha", "default 1"}},
       .shape = celu_shape,
       .decompose = celu_decomposition,
       .cost = per_output_element<15>,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]~", "[2,3]~; alpha=2.0", "[]~", "[0]"}},
      {.name = "Selu",
       .doc = "gamma * x where x > 0, else gamma * alpha * (e^x - 1)",
       .attributes = {{"alpha", "default 1.67326..."}, {"gamma", "default 1.05070..."}},
       .shape = float_same_as_first,
       .decompose = selu_decomposition,
       .cost = per_output_element<11>,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]~", "[2,3]~; alpha=2.0 gamma=3.0", "[]~", "[0]"}},
      // ONNX has it since opset 18, hence our domain.
      {.name = "Mish",
       .doc = "x * tanh(log(1 + e^x))",
       .domain = kTrainscopeDomain,
       .shape = float_same_as_first,
       .decompose = mish_decomposition,
       .cost = per_output_element<20>,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]", "[20,30]", "[]", "[0]"}},
  };
}

std::vector<OpDef> piecewise_linear_ops() {
  return {
      {.name = "HardSigmoid",
       .doc = "max(0, min(1, alpha * x + beta))",
       .attributes = {{"alpha", "default 0.2"}, {"beta", "default 0.5"}},
       .shape = float_same_as_first,
       .decompose = hard_sigmoid_decomposition,
       .cost = per_output_element<4>,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]", "[4,5]~; alpha=3.0 beta=0.4", "[]", "[0]"}},
      {.name = "HardSwish",
       .doc = "x * max(0, min(1, x / 6 + 0.5))",
       .shape = float_same_as_first,
       .decompose = hard_swish_decomposition,
       .cost = per_output_element<5>,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]", "[20,30]~", "[]", "[0]"}},
      {.name = "PRelu",
       .doc = "x where x > 0, else slope * x, of inputs x, slope",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = prelu_shape,
       .decompose = prelu_decomposition,
       .cost = per_output_element<2>,
       .op_class = OpClass::kActivation,
       .traits = kComposite,
       .examples = {"[2,3]~, [2,3]", "[2,3,4]~, [3,1]", "[2,3]~, []", "[0,3], [3]",
                    "i64[4], i64[4]"}},
      {.name = "ThresholdedRelu",
       .doc = "x where x > alpha, else 0",
       .attributes = {{"alpha", "default 1"}},
       .shape = float_same_as_first,
       .decompose = thresholded_relu_decomposition,
       .cost = per_output_element<1>,
       .op_class = OpClass::kActivation,
       .traits = kComposite,
       .examples = {"[20,6]~", "[2,3]~; alpha=0.0", "[2,3]~; alpha=-0.03", "[]", "[0]"}},
      {.name = "Shrink",
       .doc = "x + bias where x < -lambd, x - bias where x > lambd, else 0",
       .attributes = {{"lambd", "half the width of the zero, default 0.5"}, {"bias", "default 0"}},
       .shape = float_same_as_first,
       .decompose = shrink_decomposition,
       .cost = per_output_element<2>,
       .op_class = OpClass::kActivation,
       .traits = kComposite,
       .examples = {"[10,6]~", "[2,3]~; lambd=0.03 bias=0.5", "[]", "[0]"}},
  };
}

}  // namespace

std::vector<OpDef> composite_activation_ops() {
  std::vector<OpDef> rows = smooth_ops();
  for (OpDef& row : piecewise_linear_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
