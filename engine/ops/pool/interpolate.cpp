// ai.trainscope's Interpolate and its gradient, for resizing and padding. ONNX has no op for either
// gradient that adds up what was read more than once; Gather would need one per tap.
#include "engine/ops/pool/interpolate.h"

#include "engine/core/text.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Inputs 1 and 2: index [outputs, taps] within [0, size), weight of the same shape. The kernel
// trusts them, hence the check of every index.
void require_taps(const OpArgs& args, std::int64_t size) {
  require_dtype(args, 1, DType::kI64);
  require_rank(args, 1, 2);
  require_dtype(args, 2, args.type(0).dtype);
  require_shape(args, 2, args.shape(1));
  known_input(args, 2);
  for (const std::int64_t place : known_input(args, 1).values<std::int64_t>()) {
    require(place >= 0 && place < size, ErrorCode::kBadInput, "index {} is outside [0, {})", place,
            size);
  }
}

int axis_of(const OpArgs& args) { return args.axis("axis", 0, args.rank(0)); }

Params axis_params(const OpArgs& args) { return AxisParams{.axis = axis_of(args)}; }

Types interpolate_shape(const OpArgs& args) {
  require_float(args, 0);
  const int axis = axis_of(args);
  require_taps(args, args.shape(0)[axis]);
  const std::int64_t outputs = args.shape(1)[0];
  if (args.has(3)) {
    require_dtype(args, 3, args.type(0).dtype);
    require_shape(args, 3, Shape{outputs});
  }
  TensorType y = args.type(0);
  y.shape[axis] = outputs;
  return {{.dtype = y.dtype, .shape = checked_shape(y.shape)}};
}

Types interpolate_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  const int axis = axis_of(args);
  const std::int64_t size = args.attributes.integer("size", 0);
  require_taps(args, size);
  require(args.shape(0)[axis] == args.shape(1)[0], ErrorCode::kBadInput,
          "the output gradient is {}, index has {} rows", type_text(args.type(0)),
          args.shape(1)[0]);
  TensorType x = args.type(0);
  x.shape[axis] = size;
  return {{.dtype = x.dtype, .shape = checked_shape(x.shape)}};
}

Values interpolate_rule(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const std::int64_t axis = axis_of(*args);
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = g.b("InterpolateGrad", {g.dy[0], g.x[1], g.x[2]},
                     {{"axis", axis}, {"size", args->shape(0)[static_cast<int>(axis)]}});
  return gradients;
}

Values interpolate_grad_rule(const GradArgs& g) {
  const std::int64_t axis = g.node.attributes.integer("axis", 0);
  return {g.b("Interpolate", {g.dy[0], g.x[1], g.x[2]}, {{"axis", axis}}), kNoValue, kNoValue};
}

// Two FLOPs for each element of the longer side and tap.
Cost taps_cost(const OpArgs& args, const TensorType& outputs) {
  return with_flops(args, matmul_flops(outputs.elements(), args.shape(1)[1]));
}

ValueId numbers(Builder& b, const Floats& values, const Shape& shape, DType dtype) {
  return b.constant(convert(Tensor::of<double>(shape, values), dtype), "weights");
}

Values inputs_of(Builder& b, ValueId x, const Taps& taps) {
  const Shape shape{taps.outputs, taps.count};
  const DType dtype = b.type(x).dtype;
  const ValueId index = b.constant(Tensor::ints(taps.index).reshaped(shape), "places");
  return {x, index, numbers(b, taps.weight, shape, dtype)};
}

}  // namespace

ValueId interpolate(Builder& b, ValueId x, int axis, const Taps& taps) {
  Values inputs = inputs_of(b, x, taps);
  if (!taps.offset.empty()) {
    inputs.push_back(numbers(b, taps.offset, Shape{taps.outputs}, b.type(x).dtype));
  }
  return b("Interpolate", inputs, {{"axis", std::int64_t{axis}}});
}

ValueId interpolate_gradient(Builder& b, ValueId dy, int axis, const Taps& taps,
                             std::int64_t size) {
  return b("InterpolateGrad", inputs_of(b, dy, taps),
           {{"axis", std::int64_t{axis}}, {"size", size}});
}

std::vector<OpDef> interpolate_ops() {
  constexpr AttributeSpec kAxis{"axis", "the axis that the index is about, 0 by default"};
  return {
      {.name = "Interpolate",
       .doc = "x, index, weight [outputs, taps], offset [outputs] -> along the axis: the sum of "
              "weight * x[index] over the taps, plus the offset",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 4,
       .attributes = {kAxis},
       .params = axis_params,
       .shape = interpolate_shape,
       .gradient = interpolate_rule,
       .cost = [](const OpArgs& args) { return taps_cost(args, args.outputs[0]); },
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"[2,3], i64[4,1]={0,0,1,1}, [4,1]={1,1,1,1}",
                    "[2,3], i64[2,2]={0,1,2,2}, [2,2]={0.25,0.75,0.5,0.5}; axis=1",
                    "[2,3,2], i64[2,2]={0,1,2,2}, [2,2]={0.25,0.75,0,0}, [2]={0,10}; axis=1",
                    "[0,3], i64[1,1]={2}, [1,1]={1}; axis=1", "[3], i64[0,2]={}, [0,2]={}",
                    "[200,300,5], i64[2,2]={7,9,299,0}, [2,2]={0.5,0.5,2,1}; axis=1",
                    "[300,400], i64[3,1]={7,9,399}, [3,1]={0.5,1,2}; axis=1"}},
      {.name = "InterpolateGrad",
       .doc = "dy, index, weight -> the gradient of Interpolate by its input",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kAxis, {"size", "of the axis of the result"}},
       .params = axis_params,
       .shape = interpolate_grad_shape,
       .gradient = interpolate_grad_rule,
       .cost = [](const OpArgs& args) { return taps_cost(args, args.type(0)); },
       .op_class = OpClass::kMovement,
       .traits = kWholeValuesOnce,
       .examples = {"[4,3], i64[4,1]={0,0,1,1}, [4,1]={1,1,1,1}; size=2",
                    "[2,2], i64[2,2]={0,1,2,2}, [2,2]={0.25,0.75,0.5,0.5}; axis=1 size=3",
                    "[0,1], i64[1,1]={2}, [1,1]={1}; axis=1 size=3",
                    "[0], i64[0,2]={}, [0,2]={}; size=3",
                    "[2,2,700], i64[2,2]={7,9,299,0}, [2,2]={0.5,0.5,2,1}; axis=1 size=300",
                    "[300,3], i64[3,1]={7,9,399}, [3,1]={0.5,1,2}; axis=1 size=400"}},
  };
}

}  // namespace trainscope
