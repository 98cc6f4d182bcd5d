// Op rows: FakeQuantize, what quantizing and back makes of a float, and its straight-through
// gradient (Bengio et al. 2013); the gradient of the scale is that of learned step sizes (Esser et
// al. 2020) without their factor.
#include "engine/ops/quantize/fake_quantize.h"

#include "engine/core/text.h"
#include "engine/ops/quantize/quantize_layout.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

QuantizeParams fake_quantize_params(const OpArgs& args) {
  QuantizeParams params = quantize_layout(args, 1);
  params.least = args.attributes.number("least", 0.0);
  params.greatest = args.attributes.number("greatest", 255.0);
  require(params.least < params.greatest, ErrorCode::kBadInput,
          "attributes least and greatest are {} and {}: no range", params.least, params.greatest);
  return params;
}

// Inputs x, scale, zero point, all of one float type.
Types fake_quantize_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  fake_quantize_params(args);
  require_shape(args, 2, args.shape(1));
  return {args.type(0)};
}

// Inputs x, scale, zero point, dy.
Types fake_quantize_grad_shape(const OpArgs& args) {
  require_same_types(args, 0, 3);
  return fake_quantize_shape(args);
}

// y = s * (clip(round(x / s) + z) - z), rounding taken for the identity: dy/ds is
// (y - x) / s where x is in the range and y / s where it is not, which is (dy y - dx x) / s.
ValueId scale_gradient(const GradArgs& g, ValueId dx) {
  const NodeArgs args(g.b.graph(), g.node);
  const QuantizeParams layout = quantize_layout(*args, 1);
  const Shape scale = args->shape(1);
  const ValueId terms = g.b("Sub", {g.b("Mul", {g.dy[0], g.y[0]}), g.b("Mul", {dx, g.x[0]})});
  Shape along;
  const Shape x = args->shape(0);
  for (int a = 0; a < x.rank; ++a) along.push_back(a == layout.axis && scale.rank == 1 ? x[a] : 1);
  if (scale.elements() == 1) along = {};
  return g.b("Div", {g.b.reshape(g.b.sum_to(terms, along), scale), g.x[1]});
}

Values fake_quantize_gradient(const GradArgs& g) {
  const bool blocks = g.node.attributes.integer("block_size", 0) > 0;
  const bool by_scale = g.wants(1) && !blocks;
  if (!g.wants(0) && !by_scale) return {kNoValue, kNoValue, kNoValue};
  const ValueId dx = g.b("FakeQuantizeGrad", {g.x[0], g.x[1], g.x[2], g.dy[0]}, g.node.attributes);
  return {dx, by_scale ? scale_gradient(g, dx) : kNoValue, kNoValue};
}

std::vector<AttributeSpec> attributes() {
  return {{"least", "the least integer (default 0)"},
          {"greatest", "the greatest integer (default 255)"},
          {"axis", "of which each index has a scale of its own (default 1)"},
          {"block_size", "indices of the axis that share a scale; 0 (default): none do"}};
}

}  // namespace

std::vector<OpDef> fake_quantize_rows() {
  return {
      {.name = "FakeQuantize",
       .doc = "(clip(round(x / scale) + zero, least, greatest) - zero) * scale of x, scale, zero: "
              "x as its quantized form holds it. dx is dy inside the range and 0 outside; the "
              "gradient of the scale is (dy y - dx x) / scale, none where blocks share scales; the "
              "zero has none",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = attributes(),
       .params = [](const OpArgs& args) -> Params { return fake_quantize_params(args); },
       .shape = fake_quantize_shape,
       .gradient = fake_quantize_gradient,
       .cost = per_output_element<8>,
       .in_place = first_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValues,
       // Steps so small that differences see the identity in the range [-0.1, 0.1].
       .examples = {"[4,5]~, []={1e-12}, []={0}; least=-1e11 greatest=1e11",
                    "[4,3]~, [3]={1e-12,2e-12,1e-12}, [3]={0,0,1}; least=-1e11 greatest=1e11",
                    "[3,4]~, [3]={1e-12,2e-12,1e-12}, [3]={0,0,1}; axis=0 least=-1e11 "
                    "greatest=1e11",
                    "[2,5]~, [2,3]={1e-12,2e-12,1e-12,1e-12,1e-12,3e-12}, [2,3]={0,0,0,0,0,0}; "
                    "block_size=2 least=-1e11 greatest=1e11",
                    "[]~, []={1e-12}, []={0}; least=-1e11 greatest=1e11",
                    "[0,3], []={1e-12}, []={0}; least=-1e11 greatest=1e11"}},
      {.name = "FakeQuantizeGrad",
       .doc =
           "dy where round(x / scale) + zero is in [least, greatest], else 0, of inputs x, scale, "
           "zero, dy",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = attributes(),
       .params = [](const OpArgs& args) -> Params { return fake_quantize_params(args); },
       .shape = fake_quantize_grad_shape,
       .cost = per_output_element<6>,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValuesOnce,
       .examples = {"[4,5]~, []={0.02}, []={0}, [4,5]; least=-4 greatest=3",
                    "[4,3]~, [3]={0.02,0.04,0.02}, [3]={0,0,1}, [4,3]; least=-4 greatest=3",
                    "[2,5]~, [2,3]={1,2,1,1,1,3}, [2,3]={0,0,0,0,0,0}, [2,5]; block_size=2",
                    "[0,3], []={1}, []={0}, [0,3]"}},
  };
}

}  // namespace trainscope
