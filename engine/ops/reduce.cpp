// Op rows: sums and means over axes.
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/cost_rules.h"
#include "engine/ops/gradient_rules.h"
#include "engine/ops/shape_rules.h"

namespace trainscope {
namespace {

enum class WhenEmpty : std::uint8_t { kReduceAll, kReduceNone };

ReduceParams reduced_axes(const OpArgs& args, const Ints& axes, WhenEmpty when_empty) {
  ReduceParams params;
  for (int axis : normalized_axes(axes, args.rank(0))) {
    params.reduced[static_cast<std::size_t>(axis)] = true;
  }
  if (axes.empty() && when_empty == WhenEmpty::kReduceAll) params.reduced.fill(true);
  return params;
}

// ONNX 13: the axes of ReduceSum are an input, those of ReduceMean (until opset 18) an attribute.
ReduceParams sum_params(const OpArgs& args) {
  const bool noop = args.attributes.integer("noop_with_empty_axes", 0) != 0;
  return reduced_axes(args, args.has(1) ? args.constant_ints(1) : Ints{},
                      noop ? WhenEmpty::kReduceNone : WhenEmpty::kReduceAll);
}

ReduceParams mean_params(const OpArgs& args) {
  return reduced_axes(args, args.attributes.integers("axes"), WhenEmpty::kReduceAll);
}

Types reduced_type(const OpArgs& args, const ReduceParams& params) {
  const bool keep = args.attributes.integer("keepdims", 1) != 0;
  return {{.dtype = args.type(0).dtype, .shape = reduced_shape(args.shape(0), params, keep)}};
}

Types sum_shape(const OpArgs& args) {
  require(args.type(0).dtype != DType::kBool, ErrorCode::kBadInput,
          "input 0 must be a tensor of numbers, is {}", type_text(args.type(0)));
  return reduced_type(args, sum_params(args));
}

Types mean_shape(const OpArgs& args) {
  require_float(args, 0);
  return reduced_type(args, mean_params(args));
}

// dy with 1 in place of the reduced axes, repeated along them.
ValueId spread(const GradArgs& g, const ReduceParams& params, ValueId dy) {
  const Shape shape = g.type(g.x[0]).shape;
  const ValueId kept = g.b.reshape(dy, reduced_shape(shape, params, true));
  if (g.type(kept).shape == shape) return kept;
  return g.b("Expand", {kept, g.b.ints(Ints(shape.span().begin(), shape.span().end()))});
}

Values sum_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = spread(g, sum_params(*args), g.dy[0]);
  return gradients;
}

// Scaled before it is spread: the product is as small as dy.
Values mean_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const std::int64_t outputs = g.type(g.dy[0]).elements();
  if (outputs == 0) return {zeros(g.b, g.type(g.x[0]))};
  const std::int64_t averaged = g.type(g.x[0]).elements() / outputs;
  const double scale = averaged == 0 ? 0.0 : 1.0 / static_cast<double>(averaged);
  const ValueId factor = g.b.scalar(scale, g.type(g.dy[0]).dtype);
  return {spread(g, mean_params(*args), g.b("Mul", {g.dy[0], factor}))};
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  return {
      {.name = "ReduceSum",
       .doc = "the sum over the axes of input 1 (all of them when it is absent or empty)",
       .min_inputs = 1,
       .max_inputs = 2,
       .attributes = {{"keepdims", "1 (default): reduced axes stay with size 1"},
                      {"noop_with_empty_axes", "1: no axes means no reduction"}},
       .params = [](const OpArgs& args) -> Params { return sum_params(args); },
       .shape = sum_shape,
       .gradient = sum_gradient,
       .cost = per_input_element<1>,
       .examples = {"[2,3]", "[2,3]; keepdims=0", "[2,3,4], i64[1]={1}", "[2,3,4], i64[2]={0,-1}",
                    "[4,5,6], i64[2]={0,1}; keepdims=0", "[3,2,5,4], i64[2]={1,3}",
                    "[2,3], i64[0]={}; noop_with_empty_axes=1", "[]", "[0,3], i64[1]={0}", "[0,3]",
                    "[600,300], i64[1]={0}", "[300,600], i64[1]={1}", "[4,8,50,60], i64[3]={0,2,3}",
                    "[70,3001]", "i64[3,4]<9, i64[1]={0}", "i32[3,4]<9, i64[1]={1}"}},
      {.name = "ReduceMean",
       .doc = "the mean over the axes of the attribute (all of them when it is absent)",
       .attributes = {{"axes", "axes to average over, negative ones from the end"},
                      {"keepdims", "1 (default): reduced axes stay with size 1"}},
       .params = [](const OpArgs& args) -> Params { return mean_params(args); },
       .shape = mean_shape,
       .gradient = mean_gradient,
       .cost = per_input_element<1>,
       .examples = {"[2,3]", "[2,3]; axes={1} keepdims=0", "[2,3,4]; axes={-1}",
                    "[2,3,4]; axes={0,2}", "[]", "[0,3]; axes={1}", "[600,300]; axes={0}",
                    "[300,600]; axes={-1}"}},
  };
}

}  // namespace trainscope
