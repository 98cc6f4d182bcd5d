// Op rows: the larger and the smaller of numbers, with numpy broadcasting, and limits.
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// The share of dy that flows to a in max(a, b); to a in min(a, b) flows that of max(b, a).
Values maximum_gradient(const GradArgs& g) {
  const auto share_of = [&g](ValueId a, ValueId b) {
    return [&g, a, b] { return g.b("MaximumGrad", {g.dy[0], a, b}); };
  };
  return {gradient_of_input(g, 0, share_of(g.x[0], g.x[1])),
          gradient_of_input(g, 1, share_of(g.x[1], g.x[0]))};
}

Values minimum_gradient(const GradArgs& g) {
  const auto share_of = [&g](ValueId a, ValueId b) {
    return [&g, a, b] { return g.b("MaximumGrad", {g.dy[0], b, a}); };
  };
  return {gradient_of_input(g, 0, share_of(g.x[0], g.x[1])),
          gradient_of_input(g, 1, share_of(g.x[1], g.x[0]))};
}

// Inputs dy, a, b: the shape of dy.
Types maximum_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_shape(args, 0, broadcast_shapes(args.shape(1), args.shape(2)));
  return {args.type(0)};
}

// --- Clip: x, lower limit, upper limit -----------------------------------------------------------
Types clip_shape(const OpArgs& args) {
  require_number(args, 0);
  require_same_dtypes(args);
  for (int i = 1; i < args.input_count(); ++i) {
    if (!args.has(i)) continue;
    require(args.type(i).elements() == 1 && args.rank(i) <= 1, ErrorCode::kBadInput,
            "input {} must hold one element, is {}", i, type_text(args.type(i)));
  }
  return {args.type(0)};
}

// As PyTorch's clamp: x on a limit passes its gradient on, and where the limits cross (lower above
// upper) everything belongs to the upper one.
class ClipGradient {
 public:
  explicit ClipGradient(const GradArgs& g)
      : g_(g), lower_(input(1)), upper_(input(2)), zero_(g.b.scalar(0.0, g.type(g.dy[0]).dtype)) {}

  ValueId by_x() const {
    return g_.b("Where", {g_.b("Equal", {g_.x[0], g_.y[0]}), g_.dy[0], zero_});
  }
  ValueId by_lower() const {
    ValueId below = g_.b("Less", {g_.x[0], lower_});
    if (upper_ != kNoValue) {
      below = g_.b("And", {below, g_.b("LessOrEqual", {lower_, upper_})});
    }
    return g_.b("Where", {below, g_.dy[0], zero_});
  }
  ValueId by_upper() const {
    ValueId above = g_.b("Greater", {g_.x[0], upper_});
    if (lower_ != kNoValue) above = g_.b("Or", {above, g_.b("Greater", {lower_, upper_})});
    return g_.b("Where", {above, g_.dy[0], zero_});
  }

 private:
  ValueId input(std::size_t i) const { return i < g_.x.size() ? g_.x[i] : kNoValue; }

  const GradArgs& g_;
  ValueId lower_;
  ValueId upper_;
  ValueId zero_;
};

Values clip_gradient(const GradArgs& g) {
  const ClipGradient gradient(g);
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = gradient_of_input(g, 0, [&] { return gradient.by_x(); });
  if (g.x.size() > 1) {
    gradients[1] = gradient_of_input(g, 1, [&] { return gradient.by_lower(); });
  }
  if (g.x.size() > 2) {
    gradients[2] = gradient_of_input(g, 2, [&] { return gradient.by_upper(); });
  }
  return gradients;
}

// --- Max and Min of any number of tensors --------------------------------------------------------
constexpr char kMaximum[] = "Maximum";
constexpr char kMinimum[] = "Minimum";
constexpr char kReduceMax[] = "ReduceMax";
constexpr char kReduceMin[] = "ReduceMin";

// Of more than two floats equal ones share the gradient evenly: they are stacked and reduced.
template <const char* kOfTwo, const char* kReduced>
Values extreme_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  if (node.inputs.size() <= 2 || !is_float(args->type(0).dtype)) return folded<kOfTwo>(b, node);
  const Shape y = broadcast_given_numbers(*args)[0].shape;
  Ints layer{1};
  layer.insert(layer.end(), y.span().begin(), y.span().end());
  if (std::ssize(layer) > kMaxRank) return folded<kOfTwo>(b, node);
  Values layers;
  for (ValueId x : node.inputs) layers.push_back(b("Expand", {x, b.ints(layer)}));
  const ValueId stacked = b("Concat", layers, {{"axis", std::int64_t{0}}});
  return {b(kReduced, {stacked}, {{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}})};
}

OpDef variadic_row(std::string_view name, std::string_view doc, DecomposeRule decompose) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 1,
          .max_inputs = kVariadic,
          .shape = broadcast_given_numbers,
          .decompose = decompose,
          .cost = per_output_element<1>,
          .op_class = OpClass::kPointwise,
          .traits = kComposite,
          .examples = {"[2,3]~, [2,3]~", "[3]~", "[2,3]~, [3]~, [2,1]~", "[]~, [5]~, [1]~, [5]~",
                       "[0,3], [3]", "i64[2,3]<9, i64[3]<9", "i32[4]<9, i32[]<9, i32[4]<9"}};
}

OpDef extreme_row(std::string_view name, std::string_view doc, GradientRule gradient) {
  return {
      .name = name,
      .doc = doc,
      .domain = kTrainscopeDomain,
      .min_inputs = 2,
      .max_inputs = 2,
      .shape = broadcast_numbers,
      .gradient = gradient,
      .cost = per_output_element<1>,
      .in_place = any_input_in_place,
      .op_class = OpClass::kPointwise,
      .traits = kWholeValues,
      .examples = {"[2,3]~, [2,3]~", "[2,3]~, [3]~", "[3,1]~, [2,1,4]~", "[]~, [5]~", "[0,3], [3]",
                   "[3,100,400]~, [100,1]~", "i64[2,3]<9, i64[3]<9", "i32[4]<9, i32[]<9"}};
}

}  // namespace

std::vector<OpDef> extreme_ops() {
  return {
      variadic_row("Max", "the largest of the inputs, element by element",
                   extreme_decomposition<kMaximum, kReduceMax>),
      variadic_row("Min", "the smallest of the inputs, element by element",
                   extreme_decomposition<kMinimum, kReduceMin>),
      // Not Where of a comparison: a NaN wins, and gradients of equal elements are halved.
      extreme_row("Maximum", "the larger of a and b; NaN where one of them is NaN",
                  maximum_gradient),
      extreme_row("Minimum", "the smaller of a and b; NaN where one of them is NaN",
                  minimum_gradient),
      {.name = "MaximumGrad",
       .doc = "dy where a > b, dy / 2 where a = b, else 0, of inputs dy, a, b (NaN: dy)",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = maximum_grad_shape,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3], [2,3], [2,3]", "[2,3], [3], [2,1]", "[2,3], [], [2,3]", "[], [], []",
                    "[0], [0], []", "[70,1001], [70,1], [1001]"}},
      {.name = "Clip",
       .doc = "min(max(x, input 1), input 2); a limit that is left out does not limit",
       .min_inputs = 1,
       .max_inputs = 3,
       .shape = clip_shape,
       .gradient = clip_gradient,
       .cost = per_output_element<2>,
       .in_place = first_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValues,
       .examples = {"[2,3]~, []={-0.05}, []={0.05}", "[2,3]~, [], []", "[2,3]~, [], -",
                    "[2,3]~, -, []", "[2,3]~", "[4,5], [1]={-0.5}, [1]={0.5}",
                    "[2,3]~, []={0.05}, []={-0.05}", "[0], [], []", "[70,1001]~, []={-1}, []={1}",
                    "i64[5]<9, i64[]={2}, i64[]={5}", "i32[5]<9, -, i32[]={5}"}},
  };
}

}  // namespace trainscope
