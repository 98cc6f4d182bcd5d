// Op row: UserGradient, which gives what is before it another gradient.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/error.h"
#include "engine/functions/gradient_function.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

void check_results(const OpArgs& args) {
  require(args.output_count <= args.input_count(), ErrorCode::kBadInput, "{} results of {} inputs",
          args.output_count, args.input_count());
}

Types first_inputs(const OpArgs& args) {
  check_results(args);
  return {args.inputs.begin(), args.inputs.begin() + args.output_count};
}

// The node's first inputs are the results of the op, those behind them its inputs.
Values user_gradient(const GradArgs& g) {
  const Attributes& attributes = g.node.attributes;
  const GradientFunction gradient =
      parse_gradient(attributes.text("function", ""), attributes.text("file", ""), g.b.ops(),
                     static_cast<int>(attributes.integer("line", 1)));
  const std::size_t results = g.y.size();
  Values dx(results, kNoValue);
  const Values of_inputs = build_gradient(gradient, {.b = g.b,
                                                     .attributes = {},
                                                     .x = g.x.subspan(results),
                                                     .y = g.x.first(results),
                                                     .dy = g.dy,
                                                     .wanted = g.wanted.subspan(results)});
  dx.insert(dx.end(), of_inputs.begin(), of_inputs.end());
  return dx;
}

// The first inputs as they are.
Values passed_on(Builder& b, const Node& node) {
  Values results;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool read = node.outputs[i] != kNoValue;
    results.push_back(read ? b("Identity", {node.inputs[i]}) : kNoValue);
  }
  return results;
}

}  // namespace

std::vector<OpDef> user_gradient_ops() {
  return {
      {.name = "UserGradient",
       .doc = "y1, .., x1, .. -> y1, ..: results of an op as they are, behind them its inputs, to "
              "which gradients flow as the function says, and by no other way",
       .domain = kTrainscopeDomain,
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .max_outputs = kVariadic,
       .attributes = {{"op", "whose gradient it is"},
                      {"function", "the gradient, as text"},
                      {"file", "where that stands"},
                      {"line", "in that file, of its inputs, default 1"}},
       .shape = first_inputs,
       .gradient = user_gradient,
       .decompose = passed_on,
       .replaces_gradient = true,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,3], [2,3]; op='Tanh' function='Tanh_grad(x,y,dy)=>(dx){dx=Mul(dy,x)}'",
                    "[0], [0]; op='Tanh' function='Tanh_grad(x,y,dy)=>(dx){dx=Mul(dy,x)}'"}},
  };
}

}  // namespace trainscope
