// Op rows: running sums.
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

ScanParams cumsum_params(const OpArgs& args) {
  const Ints axis = args.constant_ints(1);
  require(axis.size() == 1, ErrorCode::kBadInput, "input 1 must hold one axis, holds {}",
          axis.size());
  return {.axis = normalized_axis(axis[0], args.rank(0)),
          .exclusive = args.attributes.integer("exclusive", 0) != 0,
          .reverse = args.attributes.integer("reverse", 0) != 0};
}

Types cumsum_shape(const OpArgs& args) {
  require(args.type(0).dtype != DType::kBool, ErrorCode::kBadInput,
          "input 0 must be a tensor of numbers, is {}", type_text(args.type(0)));
  cumsum_params(args);
  return {args.type(0)};
}

// x[i] is in all sums from i on: dx is the running sum of dy from the other end.
Values cumsum_gradient(const GradArgs& g) {
  Attributes attributes = g.node.attributes;
  attributes.set("reverse", std::int64_t{attributes.integer("reverse", 0) == 0});
  return {g.b("CumSum", {g.dy[0], g.x[1]}, attributes), kNoValue};
}

}  // namespace

std::vector<OpDef> scan_ops() {
  return {
      {.name = "CumSum",
       .doc = "running sums of x along the axis in input 1",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"exclusive", "1: without the element itself"},
                      {"reverse", "1: from the end of the axis"}},
       .params = [](const OpArgs& args) -> Params { return cumsum_params(args); },
       .shape = cumsum_shape,
       .gradient = cumsum_gradient,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .traits = kWholeValues,
       .examples = {"[5], i64[]={0}", "[2,3], i64[1]={-1}", "[4,3], i32[]={0}; exclusive=1",
                    "[4,3], i64[]={1}; reverse=1", "[2,4,3], i64[]={1}; exclusive=1 reverse=1",
                    "[3,1], i64[]={1}; exclusive=1", "[0,3], i64[]={1}", "[3,0], i64[]={0}",
                    "i64[3,4], i64[]={0}", "i32[3,4], i64[]={1}; reverse=1", "[70,1001], i64[]={1}",
                    "[90,701], i64[]={0}; reverse=1"}},
  };
}

}  // namespace trainscope
