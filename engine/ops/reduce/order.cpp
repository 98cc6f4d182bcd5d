// Op rows: places of extreme elements along an axis.
#include <numeric>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

void require_numbers(const OpArgs& args) { require_number(args, 0); }

// --- ArgMax, ArgMin ------------------------------------------------------------------------------
Params arg_params(const OpArgs& args) {
  return ArgParams{.axis = args.axis("axis", 0, args.rank(0)),
                   .last = args.attributes.integer("select_last_index", 0) != 0};
}

Types arg_shape(const OpArgs& args) {
  require_numbers(args);
  const int axis = args.axis("axis", 0, args.rank(0));
  ReduceParams reduce;
  reduce.reduced[static_cast<std::size_t>(axis)] = true;
  const bool keep = args.attributes.integer("keepdims", 1) != 0;
  const Shape shape = reduced_shape(args.shape(0), reduce, keep);
  require(args.shape(0)[axis] > 0 || shape.elements() == 0, ErrorCode::kBadInput,
          "axis {} of input 0, {}, has no elements to choose from", axis, type_text(args.type(0)));
  return {{.dtype = DType::kI64, .shape = shape}};
}

OpDef arg_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .attributes = {{"axis", "the axis to look along, default 0"},
                         {"keepdims", "1 (default): the axis stays with size 1"},
                         {"select_last_index", "1: the last one of equal elements, not the first"}},
          .params = arg_params,
          .shape = arg_shape,
          .cost = per_input_element<1>,
          .axis = 0,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kReduction,
          .traits = kWholeValues,
          .examples = {"[2,3]", "[2,3]; axis=1 keepdims=0", "[2,3,4]; axis=-2", "[5]",
                       "i64[4,50]<3; axis=1", "i64[4,50]<3; axis=1 select_last_index=1",
                       "i32[50,4]<3", "i32[50,4]<3; select_last_index=1", "[0,3]; axis=1",
                       "[3,0]; axis=0", "[70,1001]; axis=1", "[701,101]"}};
}

// --- TopK: x, k -> values, indices ---------------------------------------------------------------
TopKParams top_k_params(const OpArgs& args) {
  const Ints count = args.constant_ints(1);
  require(count.size() == 1, ErrorCode::kBadInput, "input 1 must hold one number, holds {}",
          count.size());
  return {.axis = args.axis("axis", -1, args.rank(0)),
          .count = count[0],
          .largest = args.attributes.integer("largest", 1) != 0};
}

Types top_k_shape(const OpArgs& args) {
  require_numbers(args);
  const TopKParams params = top_k_params(args);
  Shape shape = args.shape(0);
  require(params.count >= 0 && params.count <= shape[params.axis], ErrorCode::kBadInput,
          "k is {}, axis {} of input 0 has {} elements", params.count, params.axis,
          shape[params.axis]);
  shape[params.axis] = params.count;
  return {{.dtype = args.type(0).dtype, .shape = shape}, {.dtype = DType::kI64, .shape = shape}};
}

Values top_k_gradient(const GradArgs& g) {
  if (g.dy[0] == kNoValue) return {kNoValue, kNoValue};
  const Shape shape = g.type(g.x[0]).shape;
  const bool given = g.y.size() > 1 && g.y[1] != kNoValue;
  const ValueId indices =
      given ? g.y[1] : g.b.multi("TopK", {g.x[0], g.x[1]}, 2, g.node.attributes)[1];
  return {g.b("TopKGrad", {g.dy[0], indices},
              {{"axis", g.node.attributes.integer("axis", -1)},
               {"shape", Ints(shape.span().begin(), shape.span().end())}}),
          kNoValue};
}

Types top_k_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 1, DType::kI64);
  require_shape(args, 1, args.shape(0));
  const Shape shape = checked_shape(args.attributes.integers("shape"));
  const int axis = args.axis("axis", -1, shape.rank);
  Shape chosen = shape;
  require(args.rank(0) == shape.rank, ErrorCode::kBadInput, "dy {} has another rank than shape {}",
          type_text(args.type(0)), shape_text(shape));
  chosen[axis] = args.shape(0)[axis];
  require_shape(args, 0, chosen);
  return {{.dtype = args.type(0).dtype, .shape = shape}};
}

Params top_k_grad_params(const OpArgs& args) {
  return AxisParams{.axis = args.axis("axis", -1, args.rank(0))};
}

// --- Hardmax -------------------------------------------------------------------------------------
Types hardmax_shape(const OpArgs& args) {
  args.axis("axis", -1, args.rank(0));
  return float_same_as_first(args);
}

// Where the place along the axis is that of the maximum.
Values hardmax_decomposition(Builder& b, const Node& node) {
  const ValueId x = node.inputs[0];
  const TensorType type = b.type(x);
  if (type.elements() == 0) return {b("Identity", {x})};
  const int axis = normalized_axis(node.attributes.integer("axis", -1), type.shape.rank);
  Ints places(static_cast<std::size_t>(type.shape[axis]));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  Shape along;
  for (int a = axis; a < type.shape.rank; ++a) along.push_back(a == axis ? type.shape[axis] : 1);
  const ValueId all = b.constant(Tensor::ints(places).reshaped(along), "places");
  const ValueId largest = b("ArgMax", {x}, {{"axis", std::int64_t{axis}}});
  return {cast_to(b, b("Equal", {largest, all}), type.dtype)};
}

}  // namespace

std::vector<OpDef> order_ops() {
  return {
      arg_row("ArgMax",
              "the place of the largest element along the axis; of a NaN if there is one"),
      arg_row("ArgMin",
              "the place of the smallest element along the axis; of a NaN if there is one"),
      {.name = "TopK",
       .doc = "x, k -> the k largest or smallest elements along the axis in order, and their "
              "places; of equal ones the first, NaN is larger than any number",
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .attributes = {{"axis", "the axis to look along, default -1"},
                      {"largest", "1 (default): the largest; 0: the smallest"},
                      {"sorted", "the results are in order in any case"}},
       .params = [](const OpArgs& args) -> Params { return top_k_params(args); },
       .shape = top_k_shape,
       .gradient = top_k_gradient,
       .cost = per_input_element<8>,
       .axis = -1,
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples = {"[3,4]~, i64[1]={2}; outputs=2", "[3,4]~, i64[1]={2}; outputs=1",
                    "[3,4]~, i64[1]={3}; axis=0 outputs=2", "[2,5,3]~, i64[]={2}; axis=1 outputs=2",
                    "[3,4]~, i64[1]={2}; largest=0 sorted=0 outputs=2",
                    "[3,4], i64[1]={0}; outputs=2", "[0,4], i64[1]={1}; outputs=2",
                    "i64[3,40]<5, i64[1]={20}; outputs=2",
                    "i32[3,40]<5, i64[1]={40}; largest=0 outputs=2",
                    "[90,70]~, i64[1]={9}; outputs=2", "[90,70]~, i64[1]={9}; axis=0 outputs=2"}},
      {.name = "TopKGrad",
       .doc = "zeros of a shape with dy at the places of input 1 along the axis",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"axis", "the axis that the places are about, default -1"},
                      {"shape", "of the result"}},
       .params = top_k_grad_params,
       .shape = top_k_grad_shape,
       .axis = -1,
       .op_class = OpClass::kReduction,
       .traits = kWholeValuesOnce,
       .examples = {"[2,2], i64[2,2]={0,3,2,1}; shape={2,4}",
                    "[2,3], i64[2,3]={0,3,2,1,2,0}; axis=0 shape={4,3}",
                    "[2,0], i64[2,0]={}; shape={2,4}", "[0,1], i64[0,1]={}; shape={0,4}"}},
      {.name = "Hardmax",
       .doc = "1 at the first largest element along the axis, else 0",
       .attributes = {{"axis", "the axis to look along, default -1"}},
       .shape = hardmax_shape,
       .decompose = hardmax_decomposition,
       .cost = per_input_element<2>,
       .axis = -1,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[2,3]", "[2,3,4]; axis=1", "[2,3,4]; axis=0", "[5]", "[3,0]", "[0,3]"}},
  };
}

}  // namespace trainscope
