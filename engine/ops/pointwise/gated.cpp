// Op rows: activations x * gate(x), each one pass over x where its simpler ops are many, and their
// gradients, for which x is all that is kept.
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// ONNX has both ops in later opsets than the one that stages are written in, hence our domain.
constexpr AttributeSpec kApproximate{
    "approximate",
    "'none' (default): by erf; 'tanh': 0.5 x (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3)))"};
constexpr AttributeSpec kAlpha{"alpha", "default 1"};

bool by_tanh(const OpArgs& args) {
  const std::string form = args.attributes.text("approximate", "none");
  require(form == "none" || form == "tanh", ErrorCode::kBadInput,
          "attribute approximate is '{}'; 'none' and 'tanh' exist", printable(form));
  return form == "tanh";
}

Params gelu_params(const OpArgs& args) { return GeluParams{.by_tanh = by_tanh(args)}; }
Params swish_params(const OpArgs& args) {
  return AlphaParams{.alpha = args.attributes.number("alpha", 1.0)};
}

Types gelu_shape(const OpArgs& args) {
  by_tanh(args);
  return float_same_as_first(args);
}

// Inputs dy and x of one type.
Types swish_grad_shape(const OpArgs& args) {
  require_same_types(args, 0, 1);
  return float_same_as_first(args);
}
Types gelu_grad_shape(const OpArgs& args) {
  by_tanh(args);
  return swish_grad_shape(args);
}

Values gelu_gradient(const GradArgs& g) {
  return {g.b("GeluGrad", {g.dy[0], g.x[0]}, g.node.attributes)};
}
Values swish_gradient(const GradArgs& g) {
  return {g.b("SwishGrad", {g.dy[0], g.x[0]}, g.node.attributes)};
}

std::vector<OpDef> functions() {
  return {
      {.name = "Gelu",
       .doc = "x * the normal distribution function of x: 0.5 x (1 + erf(x / sqrt(2)))",
       .domain = kTrainscopeDomain,
       .attributes = {kApproximate},
       .params = gelu_params,
       .shape = gelu_shape,
       .gradient = gelu_gradient,
       .cost = per_output_element<20>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[2,3]; approximate='tanh'", "[]", "[0]", "[0]; approximate='tanh'",
                    "[20,1001]", "[20,1001]; approximate='tanh'"}},
      {.name = "Swish",
       .doc = "x / (1 + e^(-alpha x)); SiLU with alpha 1, the quick form of Gelu with 1.702",
       .domain = kTrainscopeDomain,
       .attributes = {kAlpha},
       .params = swish_params,
       .shape = float_same_as_first,
       .gradient = swish_gradient,
       .cost = per_output_element<14>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[2,3]; alpha=1.702", "[]", "[0]", "[2,3]; alpha=-0.5",
                    "[2,3]; alpha=0.0", "[20,1001]; alpha=1.702"}},
  };
}

std::vector<OpDef> gradients() {
  return {
      {.name = "GeluGrad",
       .doc = "dy * the slope of Gelu at x, of inputs dy, x",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kApproximate},
       .params = gelu_params,
       .shape = gelu_grad_shape,
       .cost = per_output_element<34>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]", "[2,3], [2,3]; approximate='tanh'", "[0], [0]",
                    "[20,1001], [20,1001]", "[20,1001], [20,1001]; approximate='tanh'"}},
      {.name = "SwishGrad",
       .doc = "dy * the slope of Swish at x, of inputs dy, x",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kAlpha},
       .params = swish_params,
       .shape = swish_grad_shape,
       .cost = per_output_element<18>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]", "[2,3], [2,3]; alpha=1.702", "[0], [0]",
                    "[20,1001], [20,1001]; alpha=1.702"}},
  };
}

}  // namespace

std::vector<OpDef> gated_ops() {
  std::vector<OpDef> rows = functions();
  for (OpDef& row : gradients()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
