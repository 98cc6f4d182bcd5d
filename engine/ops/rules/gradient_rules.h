// Small helpers of gradient rules and decompositions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {

using Values = std::vector<ValueId>;

// A one-element tensor as the value of an attribute.
inline SharedTensor filled(double value, DType dtype) {
  return std::make_shared<const Tensor>(convert(Tensor::of<double>(Shape{1}, {&value, 1}), dtype));
}

// `v` converted to another dtype; v itself when it is of that dtype.
inline ValueId cast_to(Builder& b, ValueId v, DType dtype) {
  if (b.type(v).dtype == dtype) return v;
  return b("Cast", {v}, {{"to", onnx_number(dtype)}});
}

// The gradient of broadcast input i: summed back to its shape; none when nobody asks for it.
template <class Make>
ValueId gradient_of_input(const GradArgs& g, int i, Make make) {
  if (!g.wants(i)) return kNoValue;
  const Shape shape = g.type(g.x[static_cast<std::size_t>(i)]).shape;  // a copy: the graph grows
  return g.b.sum_to(make(), shape);
}

// The decomposition of a variadic op: kOp(kOp(kOp(x0, x1), x2), ...).
template <const char* kOp>
Values folded(Builder& b, const Node& node) {
  if (node.inputs.size() == 1) return {b("Identity", {node.inputs[0]})};
  ValueId result = node.inputs[0];
  for (std::size_t i = 1; i < node.inputs.size(); ++i) result = b(kOp, {result, node.inputs[i]});
  return {result};
}

// A tensor of zeros that the step computes (no constant that takes up memory all the time).
inline ValueId zeros(Builder& b, const TensorType& type) {
  const auto dims = type.shape.span();
  return b("ConstantOfShape", {b.ints(Ints(dims.begin(), dims.end()))},
           {{"value", filled(0.0, type.dtype)}});
}

}  // namespace trainscope
