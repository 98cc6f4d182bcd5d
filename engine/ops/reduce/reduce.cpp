// Op rows: sums, means, norms, products and extremes over axes.
#include <limits>
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

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

// ONNX 13: the axes of ReduceSum are an input, those of the others (until opset 18) an attribute.
ReduceParams sum_params(const OpArgs& args) {
  const bool noop = args.attributes.integer("noop_with_empty_axes", 0) != 0;
  return reduced_axes(args, args.has(1) ? args.constant_ints(1) : Ints{},
                      noop ? WhenEmpty::kReduceNone : WhenEmpty::kReduceAll);
}

ReduceParams attribute_params(const OpArgs& args) {
  return reduced_axes(args, args.attributes.integers("axes"), WhenEmpty::kReduceAll);
}

Types reduced_type(const OpArgs& args, const ReduceParams& params) {
  const bool keep = args.attributes.integer("keepdims", 1) != 0;
  return {{.dtype = args.type(0).dtype, .shape = reduced_shape(args.shape(0), params, keep)}};
}

Types sum_shape(const OpArgs& args) {
  require_number(args, 0);
  return reduced_type(args, sum_params(args));
}

Types upcast_sum_shape(const OpArgs& args) {
  require_float(args, 0);
  TensorType type = sum_shape(args)[0];
  type.dtype = computed(type.dtype);
  return {type};
}

Types number_shape(const OpArgs& args) {
  require_number(args, 0);
  return reduced_type(args, attribute_params(args));
}

Types float_shape(const OpArgs& args) {
  require_float(args, 0);
  return number_shape(args);
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
  return {spread(g, attribute_params(*args), g.b("Mul", {g.dy[0], factor}))};
}

// --- Rules of the reductions whose axes are an attribute -----------------------------------------
// A node's x, and y and dy with 1 in place of the reduced axes, so that they broadcast to x.
struct Kept {
  explicit Kept(const GradArgs& g)
      : b(g.b),
        x(g.x[0]),
        dtype(g.type(x).dtype),
        shape(reduced_shape(g.type(x).shape, attribute_params(*NodeArgs(b.graph(), g.node)), true)),
        dy(b.reshape(g.dy[0], shape)),
        given_y(g.y[0]) {}

  ValueId y() const { return b.reshape(given_y, shape); }
  ValueId number(double value) const { return b.scalar(value, dtype); }
  ValueId sum(ValueId v) const { return b.sum_to(v, shape); }

  Builder& b;
  ValueId x;
  DType dtype;
  Shape shape;
  ValueId dy;
  ValueId given_y;
};

Values l1_gradient(const GradArgs& g) {
  const Kept k(g);
  return {g.b("Mul", {g.b("Sign", {k.x}), k.dy})};
}

// dy x / |x|, and 0 where all of x is 0, as in PyTorch.
Values l2_gradient(const GradArgs& g) {
  const Kept k(g);
  const ValueId y = k.y();
  const ValueId zero = k.number(0.0);
  const ValueId scale = g.b("Where", {g.b("Equal", {y, zero}), zero, g.b("Div", {k.dy, y})});
  return {g.b("Mul", {k.x, scale})};
}

Values square_gradient(const GradArgs& g) {
  const Kept k(g);
  return {g.b("Mul", {k.x, g.b("Mul", {k.dy, k.number(2.0)})})};
}

// Equal extremes share dy evenly, as in PyTorch.
Values extreme_gradient(const GradArgs& g) {
  const Kept k(g);
  const ValueId chosen = cast_to(g.b, g.b("Equal", {k.x, k.y()}), k.dtype);
  return {g.b("Mul", {chosen, g.b("Div", {k.dy, k.sum(chosen)})})};
}

// dy times the product of the other elements. With `factors` (x with 1 in place of zeros) and
// their product p, that is p / factor, unless one of the other elements is 0.
Values prod_gradient(const GradArgs& g) {
  const Kept k(g);
  const ValueId zero = k.number(0.0);
  const ValueId is_zero = g.b("Equal", {k.x, zero});
  const ValueId factors = g.b("Where", {is_zero, k.number(1.0), k.x});
  const Ints axes = g.node.attributes.integers("axes");
  Attributes attributes{{"keepdims", std::int64_t{1}}};
  if (!axes.empty()) attributes.set("axes", axes);
  const ValueId p = g.b("ReduceProd", {factors}, attributes);
  const ValueId zero_marks = cast_to(g.b, is_zero, k.dtype);
  const ValueId other_zeros = g.b("Sub", {k.sum(zero_marks), zero_marks});
  const ValueId slope = g.b("Div", {g.b("Mul", {k.dy, p}), factors});
  return {g.b("Where", {g.b("Equal", {other_zeros, zero}), slope, zero})};
}

// log(sum(x))
Values log_sum_decomposition(Builder& b, const Node& node) {
  const ReduceParams params = attribute_params(*NodeArgs(b.graph(), node));
  const Shape result = b.shape(node.outputs[0]);
  const ValueId sum =
      b.sum_to(node.inputs[0], reduced_shape(b.shape(node.inputs[0]), params, true));
  return {b.reshape(b("Log", {sum}), result)};
}

// log(sum(e^(x - s))) + s for any s near the largest x. Ceil lets no gradient pass through s; the
// limits keep an infinite s out of x - s, where it would give NaN.
Values log_sum_exp_decomposition(Builder& b, const Node& node) {
  const ValueId x = node.inputs[0];
  const DType dtype = b.type(x).dtype;
  const Shape result = b.shape(node.outputs[0]);
  Attributes attributes = node.attributes;
  attributes.set("keepdims", std::int64_t{1});
  const double limit =
      dtype == DType::kF32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const ValueId shift = b("Clip", {b("Ceil", {b("ReduceMax", {x}, attributes)}),
                                   b.scalar(-limit, dtype), b.scalar(limit, dtype)});
  const ValueId powers = b("Exp", {b("Sub", {x, shift})});
  const Shape kept = b.shape(shift);  // a copy: the graph grows
  const ValueId sum = b.sum_to(powers, kept);
  return {b.reshape(b("Add", {b("Log", {sum}), shift}), result)};
}

constexpr AttributeSpec kAxes{"axes", "axes to reduce, negative ones from the end; default all"};
constexpr AttributeSpec kKeepDims{"keepdims", "1 (default): reduced axes stay with size 1"};

struct AxesRow {
  std::string_view name;
  std::string_view doc;
  ShapeRule shape;
  GradientRule gradient;
  std::vector<std::string_view> examples;
};

// Along an axis that is summed over the results are partials.
std::optional<Shards> shard_sum(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const ReduceParams params = std::get<ReduceParams>(a.node.op->params(a.op));
  if (params.reduced[static_cast<std::size_t>(shard.axis)]) {
    return every_output(a, Shard::partial());
  }
  int axis = shard.axis;
  if (output_shape(a).rank < a.op.rank(0)) {
    axis -= static_cast<int>(
        std::count(params.reduced.begin(), params.reduced.begin() + shard.axis, true));
  }
  return every_output(a, Shard::split(axis));
}

OpDef axes_row(AxesRow row) {
  return {.name = row.name,
          .doc = row.doc,
          .attributes = {kAxes, kKeepDims},
          .params = [](const OpArgs& args) -> Params { return attribute_params(args); },
          .shape = row.shape,
          .gradient = row.gradient,
          .cost = per_input_element<2>,
          .op_class = OpClass::kReduction,
          .traits = kWholeValues,
          .examples = std::move(row.examples)};
}

OpDef decomposed_row(const AxesRow& row, DecomposeRule decompose) {
  OpDef def = axes_row(row);
  def.params = nullptr;
  def.decompose = decompose;
  def.traits = kComposite;
  return def;
}

const std::vector<std::string_view> kSeparated = {"[2,3]~",
                                                  "[2,3]~; axes={1} keepdims=0",
                                                  "[2,3,4]~; axes={-1}",
                                                  "[]~",
                                                  "[2,3,4]~; axes={0,2}",
                                                  "[0,3]; axes={1}",
                                                  "[600,3]~; axes={0}",
                                                  "[3,600]~; axes={-1}",
                                                  "[20,301]~",
                                                  "i64[70,601]",
                                                  "i64[3,4]; axes={0}",
                                                  "i32[3,4]; axes={1}"};
const std::vector<std::string_view> kFloats = {"[2,3]",
                                               "[2,3]; axes={1} keepdims=0",
                                               "[2,3,4]; axes={-1}",
                                               "[]",
                                               "[2,3,4]; axes={0,2} keepdims=0",
                                               "[0,3]; axes={1}",
                                               "[600,3]; axes={0}",
                                               "[3,600]; axes={-1}",
                                               "[70,301]"};

std::vector<OpDef> axes_ops() {
  return {
      axes_row({"ReduceL1", "the sum of |x| over the axes", number_shape, l1_gradient, kSeparated}),
      axes_row({"ReduceL2", "the root of the sum of x^2 over the axes", float_shape, l2_gradient,
                kFloats}),
      axes_row({"ReduceSumSquare", "the sum of x^2 over the axes", number_shape, square_gradient,
                kSeparated}),
      axes_row({"ReduceMax", "the largest x over the axes; NaN if there is one", number_shape,
                extreme_gradient, kSeparated}),
      axes_row({"ReduceMin", "the smallest x over the axes; NaN if there is one", number_shape,
                extreme_gradient, kSeparated}),
      axes_row({"ReduceProd",
                "the product of x over the axes",
                number_shape,
                prod_gradient,
                {"[2,3]", "[2,3]; axes={1} keepdims=0", "[2,3,4]; axes={-1}", "[]",
                 "[2,3,4]; axes={0,2}", "[0,3]; axes={1}", "[9,200]>0; axes={0}",
                 "[200,9]>0; axes={-1}", "i64[3,4]; axes={0}", "i32[3,4]; axes={1}"}}),
      decomposed_row({"ReduceLogSum",
                      "the logarithm of the sum of x over the axes",
                      float_shape,
                      nullptr,
                      {"[2,3]>0", "[2,3]>0; axes={1} keepdims=0", "[2,3,4]>0; axes={0,2}", "[]>0",
                       "[0,3]; axes={1}"}},
                     log_sum_decomposition),
      decomposed_row({"ReduceLogSumExp", "the logarithm of the sum of e^x over the axes",
                      float_shape, nullptr, kFloats},
                     log_sum_exp_decomposition),
  };
}

std::vector<OpDef> sum_ops() {
  return {
      {.name = "ReduceSum",
       .doc = "the sum over the axes of input 1 (all of them when it is absent or empty)",
       .min_inputs = 1,
       .max_inputs = 2,
       .attributes = {kKeepDims, {"noop_with_empty_axes", "1: no axes means no reduction"}},
       .params = [](const OpArgs& args) -> Params { return sum_params(args); },
       .shape = sum_shape,
       .gradient = sum_gradient,
       .cost = per_input_element<1>,
       .precision = Precision::kFollow,
       .upcast_form = "ReduceSumWide",
       .op_class = OpClass::kReduction,
       .traits = sharded({.rule = shard_sum, .linear = true, .by_examples = true}),
       .examples = {"[2,3]", "[2,3]; keepdims=0", "[2,3,4], i64[1]={1}", "[2,3,4], i64[2]={0,-1}",
                    "[4,5,6], i64[2]={0,1}; keepdims=0", "[3,2,5,4], i64[2]={1,3}",
                    "[2,3], i64[0]={}; noop_with_empty_axes=1", "[]", "[0,3], i64[1]={0}", "[0,3]",
                    "[600,300], i64[1]={0}", "[300,600], i64[1]={1}", "[4,8,50,60], i64[3]={0,2,3}",
                    "[70,3001]", "i64[3,4]<9, i64[1]={0}", "i32[3,4]<9, i64[1]={1}"}},
      {.name = "ReduceSumWide",
       .doc = "ReduceSum whose result is f32 for bf16 and f16 too",
       .domain = kTrainscopeDomain,
       .min_inputs = 1,
       .max_inputs = 2,
       .attributes = {kKeepDims, {"noop_with_empty_axes", "1: no axes means no reduction"}},
       .params = [](const OpArgs& args) -> Params { return sum_params(args); },
       .shape = upcast_sum_shape,
       .cost = per_input_element<1>,
       .op_class = OpClass::kReduction,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3]", "[2,3]; keepdims=0", "[2,3,4], i64[1]={1}", "[0,3], i64[1]={0}",
                    "[600,300], i64[1]={0}"}},
      {.name = "ReduceMean",
       .doc = "the mean over the axes of the attribute (all of them when it is absent)",
       .attributes = {kAxes, kKeepDims},
       .params = [](const OpArgs& args) -> Params { return attribute_params(args); },
       .shape = float_shape,
       .gradient = mean_gradient,
       .cost = per_input_element<1>,
       .precision = Precision::kFollow,
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples = {"[2,3]", "[2,3]; axes={1} keepdims=0", "[2,3,4]; axes={-1}",
                    "[2,3,4]; axes={0,2}", "[]", "[0,3]; axes={1}", "[600,300]; axes={0}",
                    "[300,600]; axes={-1}"}},
  };
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  std::vector<OpDef> rows = sum_ops();
  for (OpDef& row : axes_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
