// Op rows: running sums and products.
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
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
  require_number(args, 0);
  cumsum_params(args);
  return {args.type(0)};
}

// x[i] is in all sums from i on: dx is the running sum of dy from the other end.
Values cumsum_gradient(const GradArgs& g) {
  Attributes attributes = g.node.attributes;
  attributes.set("reverse", std::int64_t{attributes.integer("reverse", 0) == 0});
  return {g.b("CumSum", {g.dy[0], g.x[1]}, attributes), kNoValue};
}

// --- CumProd -------------------------------------------------------------------------------------
// y moved by `by` places along the axis, ones before it (after it: `reverse`).
ValueId moved(Builder& b, ValueId y, const ScanParams& params, std::int64_t by) {
  const TensorType type = b.type(y);  // a copy: the graph grows
  const std::int64_t size = type.shape[params.axis];
  Ints dims = ints_of(type.shape);
  dims[static_cast<std::size_t>(params.axis)] = by;
  const ValueId ones = b("ConstantOfShape", {b.ints(dims)}, {{"value", filled(1.0, type.dtype)}});
  const std::int64_t begin = params.reverse ? by : 0;
  const ValueId rest =
      b("Slice", {y, b.ints({begin}), b.ints({begin + size - by}), b.ints({params.axis})});
  const Values parts = params.reverse ? Values{rest, ones} : Values{ones, rest};
  return b("Concat", parts, {{"axis", std::int64_t{params.axis}}});
}

// Products of 2, 4, 8, ... neighbours: each is that of two halves. No division, so that zeros and
// their gradients are exact.
Values cumprod_decomposition(Builder& b, const Node& node) {
  const ScanParams params = cumsum_params(*NodeArgs(b.graph(), node));
  const std::int64_t size = b.shape(node.inputs[0])[params.axis];
  ValueId y = node.inputs[0];
  if (params.exclusive && size > 0) y = moved(b, y, params, 1);
  for (std::int64_t by = 1; by < size; by *= 2) y = b("Mul", {y, moved(b, y, params, by)});
  return {own_value(b, node, y)};
}

}  // namespace

std::vector<OpDef> scan_ops() {
  return {
      // ONNX has it since opset 26, hence our domain.
      {.name = "CumProd",
       .doc = "running products of x along the axis in input 1",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"exclusive", "1: without the element itself"},
                      {"reverse", "1: from the end of the axis"}},
       .shape = cumsum_shape,
       .decompose = cumprod_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[5], i64[]={0}", "[2,3], i64[1]={-1}", "[4,3], i32[]={0}; exclusive=1",
                    "[6]={2,0,-1,3,0,4}, i64[]={0}", "[4,3], i64[]={1}; reverse=1",
                    "[2,4,3], i64[]={1}; exclusive=1 reverse=1", "[3,1], i64[1]={1}; exclusive=1",
                    "[0,3], i64[]={1}", "[3,0], i64[]={1}", "i64[3,4]<4, i64[]={0}",
                    "i32[3,4]<4, i64[]={1}; reverse=1", "[7,65], i64[]={1}"}},
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
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples = {"[5], i64[]={0}", "[2,3], i64[1]={-1}", "[4,3], i32[]={0}; exclusive=1",
                    "[4,3], i64[]={1}; reverse=1", "[2,4,3], i64[]={1}; exclusive=1 reverse=1",
                    "[3,1], i64[]={1}; exclusive=1", "[0,3], i64[]={1}", "[3,0], i64[]={0}",
                    "i64[3,4], i64[]={0}", "i32[3,4], i64[]={1}; reverse=1", "[70,1001], i64[]={1}",
                    "[90,701], i64[]={0}; reverse=1"}},
  };
}

}  // namespace trainscope
