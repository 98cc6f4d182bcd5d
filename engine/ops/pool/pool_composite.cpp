// Pools written with simpler ops: GlobalMaxPool, LpPool, GlobalLpPool.
#include <algorithm>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/pool/window_attributes.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Over whole planes ---------------------------------------------------------------------------

Types global_shape(const OpArgs& args) {
  require_float(args, 0);
  require(args.rank(0) >= 3, ErrorCode::kBadInput,
          "input 0 must have a batch, a channel and one spatial dimension at least, is {}",
          type_text(args.type(0)));
  TensorType y = args.type(0);
  for (int axis = 2; axis < y.shape.rank; ++axis) y.shape[axis] = 1;
  return {y};
}

std::int64_t plane_of(const Shape& shape) { return Shape(shape.span().subspan(2)).elements(); }

Types global_max_shape(const OpArgs& args) {
  Types types = global_shape(args);
  require(plane_of(args.shape(0)) > 0, ErrorCode::kBadInput,
          "the largest of no elements does not exist: input 0 is {}", type_text(args.type(0)));
  return types;
}

// One window as long as the plane.
Values global_max_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape x = args->shape(0);
  const std::int64_t plane = plane_of(x);
  const ValueId planes = b.reshape(node.inputs[0], {x[0], x[1], plane});
  const ValueId largest = b("MaxPool", {planes}, {{"kernel_shape", Ints{plane}}});
  return {b.reshape(largest, global_shape(*args)[0].shape)};
}

// --- Norms ---------------------------------------------------------------------------------------

// |x|^p and the p-th root, without the general power where a simpler op exists.
std::int64_t order_of(const OpArgs& args) {
  const std::int64_t order = args.attributes.integer("p", 2);
  require(order >= 1 && order <= 1024, ErrorCode::kBadInput,
          "attribute p is {}, expected a number in [1, 1024]", order);
  return order;
}

ValueId powers(Builder& b, ValueId x, std::int64_t order) {
  if (order == 1) return b("Abs", {x});
  if (order == 2) return b("Mul", {x, x});
  const DType dtype = b.type(x).dtype;
  return b("Pow", {b("Abs", {x}), b.scalar(static_cast<double>(order), dtype)});
}

ValueId root(Builder& b, ValueId sum, std::int64_t order) {
  if (order == 1) return sum;
  if (order == 2) return b("Sqrt", {sum});
  const DType dtype = b.type(sum).dtype;
  return b("Pow", {sum, b.scalar(1.0 / static_cast<double>(order), dtype)});
}

Types global_lp_shape(const OpArgs& args) {
  order_of(args);
  return global_shape(args);
}

Values global_lp_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  Ints axes;
  for (int axis = 2; axis < args->rank(0); ++axis) axes.push_back(axis);
  const std::int64_t order = order_of(*args);
  const ValueId sum = b("ReduceSum", {powers(b, node.inputs[0], order), b.ints(axes)},
                        {{"keepdims", std::int64_t{1}}});
  return {root(b, sum, order)};
}

// The windows of the pool; those that ceil_mode adds have more zeros after the end.
WindowParams lp_window(const OpArgs& args) {
  const Ints kernel = args.attributes.integers("kernel_shape");
  require(!kernel.empty(), ErrorCode::kBadInput, "attribute kernel_shape is missing");
  const Shape& x = args.shape(0);
  WindowParams window = window_params(args, x, kernel);
  if (args.attributes.integer("ceil_mode", 0) == 0) return window;
  for (int axis = 0; axis < window.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t windows = window_output_size(window, axis, x[axis + 2], Rounding::kCeil);
    const std::int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    const std::int64_t reach = (windows - 1) * window.stride[i] + extent - window.pad_begin[i];
    window.pad_end[i] = std::max(window.pad_end[i], reach - x[axis + 2]);
  }
  return window;
}

Types lp_pool_shape(const OpArgs& args) {
  order_of(args);
  require_float(args, 0);
  return {
      {args.type(0).dtype, window_output_shape(lp_window(args), args.shape(0), args.shape(0)[1])}};
}

// The attributes of the mean over the same windows, which counts padding as zeros.
Attributes mean_attributes(const WindowParams& window) {
  Attributes attributes = window_attributes(window);
  attributes.set("count_include_pad", std::int64_t{1});
  return attributes;
}

// The mean of a window times its size is its sum.
Values lp_pool_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const std::int64_t order = order_of(*args);
  const WindowParams window = lp_window(*args);
  double taps = 1.0;
  for (int axis = 0; axis < window.rank; ++axis) {
    taps *= static_cast<double>(window.kernel[static_cast<std::size_t>(axis)]);
  }
  const ValueId means =
      b("AveragePool", {powers(b, node.inputs[0], order)}, mean_attributes(window));
  const ValueId sums = b("Mul", {means, b.scalar(taps, args->type(0).dtype)});
  return {root(b, sums, order)};
}

}  // namespace

std::vector<OpDef> pool_composite_ops() {
  constexpr AttributeSpec kOrder{"p", "order of the norm, 2 by default"};
  return {
      {.name = "GlobalMaxPool",
       .doc = "Largest element over all spatial axes; NaN if there is one.",
       .shape = global_max_shape,
       .decompose = global_max_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[2,3,4,5]~", "[2,3,4]~", "[1,2,3,4,2]~", "[1,2,1,1]~", "[0,3,4,4]",
                    "[4,32,20,20]~"}},
      {.name = "LpPool",
       .doc = "Norm of the elements of each window.",
       .attributes = {{"kernel_shape", "size of the window per spatial axis"},
                      {"strides", "step of the window per spatial axis, 1"},
                      {"pads", "zeros before each spatial axis, then after each"},
                      {"auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
                      {"dilations", "step between elements of a window, 1"},
                      {"ceil_mode", "1: a partial last window counts"},
                      kOrder},
       .shape = lp_pool_shape,
       .decompose = lp_pool_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[1,2,5,6]; kernel_shape={2,3}",
                    "[2,2,7]; kernel_shape={3} strides={2} pads={1,0}",
                    "[1,2,5,6]~; kernel_shape={2,2} p=3", "[1,2,6]~; kernel_shape={2} p=1",
                    "[1,1,5,5]; kernel_shape={3,3} strides={2,2} auto_pad='SAME_UPPER'",
                    "[1,2,7,6]; kernel_shape={2,3} dilations={3,2}",
                    "[1,2,6,6]; kernel_shape={3,3} strides={2,2} ceil_mode=1",
                    "[0,2,4,4]; kernel_shape={2,2}", "[2,8,30,30]; kernel_shape={3,3}"}},
      {.name = "GlobalLpPool",
       .doc = "Norm of all elements over all spatial axes.",
       .attributes = {kOrder},
       .shape = global_lp_shape,
       .decompose = global_lp_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[2,3,4,5]", "[2,3,4]~; p=1", "[2,3,4,2,2]~; p=3", "[0,3,4]", "[4,32,20,20]"}},
  };
}

}  // namespace trainscope
