// MaxPool, AveragePool, GlobalAveragePool, and ai.trainscope's gradients of the first two.
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/pool/window_attributes.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// x [N, C, in...], y [N, C, windows...]

PoolParams pool_params(const OpArgs& args, const Shape& x) {
  const Ints kernel = args.attributes.integers("kernel_shape");
  require(!kernel.empty(), ErrorCode::kBadInput, "attribute kernel_shape is missing");
  return {.window = window_params(args, x, kernel),
          .count_include_pad = args.attributes.integer("count_include_pad", 0) != 0};
}

Shape pooled_shape(const OpArgs& args, const Shape& x) {
  const WindowParams window = pool_params(args, x).window;
  for (int axis = 0; axis < window.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    require(window.pad_begin[i] < extent && window.pad_end[i] < extent, ErrorCode::kBadInput,
            "padding of {} and {} along spatial axis {} holds whole windows of {} elements",
            window.pad_begin[i], window.pad_end[i], axis, extent);
  }
  const bool ceil = args.attributes.integer("ceil_mode", 0) != 0;
  return window_output_shape(window, x, x[1], ceil ? Rounding::kCeil : Rounding::kFloor);
}

Params forward_params(const OpArgs& args) { return pool_params(args, args.shape(0)); }

Types forward_shape(const OpArgs& args) {
  require_float(args, 0);
  return {{args.type(0).dtype, pooled_shape(args, args.shape(0))}};
}

Types max_pool_shape(const OpArgs& args) {
  const Types y = forward_shape(args);
  require_supported(args.output_count == 1 || args.attributes.integer("storage_order", 0) == 0,
                    "places that count columns first (storage_order=1) are not supported");
  return {y[0], {.dtype = DType::kI64, .shape = y[0].shape}};
}

// One FLOP for each element under each window.
Cost window_cost(const OpArgs& args, const Shape& y) {
  std::int64_t flops = y.elements();
  for (std::int64_t size : args.attributes.integers("kernel_shape")) {
    flops = saturating_multiply(flops, size);
  }
  return with_flops(args, flops);
}
Cost forward_cost(const OpArgs& args) { return window_cost(args, args.outputs[0].shape); }
Cost backward_cost(const OpArgs& args) { return window_cost(args, args.shape(0)); }

// --- Gradients -----------------------------------------------------------------------------------

// The attributes of a gradient op, with padding in numbers.
Attributes gradient_attributes(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const PoolParams params = pool_params(*args, args->shape(0));
  Attributes attributes = window_attributes(params.window);
  attributes.set("ceil_mode", args->attributes.integer("ceil_mode", 0));
  attributes.set("count_include_pad", std::int64_t{params.count_include_pad ? 1 : 0});
  return attributes;
}

Values max_pool_gradient(const GradArgs& g) {
  return {g.b("MaxPoolGrad", {g.dy[0], g.x[0]}, gradient_attributes(g))};
}

Values average_pool_gradient(const GradArgs& g) {
  Attributes attributes = gradient_attributes(g);
  const Shape x = g.type(g.x[0]).shape;
  attributes.set("input_shape", Ints(x.span().begin(), x.span().end()));
  return {g.b("AveragePoolGrad", {g.dy[0]}, std::move(attributes))};
}

void require_pooled(const OpArgs& args, const Shape& x) {
  const Shape expected = pooled_shape(args, x);
  require(args.shape(0) == expected, ErrorCode::kBadInput, "the output gradient must be {}, is {}",
          shape_text(expected), shape_text(args.shape(0)));
}

Params max_pool_grad_params(const OpArgs& args) { return pool_params(args, args.shape(1)); }

Types max_pool_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_pooled(args, args.shape(1));
  return {args.type(1)};
}

Shape input_shape(const OpArgs& args) {
  return checked_shape(args.attributes.integers("input_shape"));
}

Params average_pool_grad_params(const OpArgs& args) { return pool_params(args, input_shape(args)); }

Types average_pool_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  const Shape x = input_shape(args);
  require_pooled(args, x);
  return {{args.type(0).dtype, x}};
}

// AveragePoolGrad is linear, and AveragePool is its transpose.
Values average_pool_grad_gradient(const GradArgs& g) {
  Attributes attributes = g.node.attributes;
  attributes.erase("input_shape");
  return {g.b("AveragePool", {g.dy[0]}, std::move(attributes))};
}

// --- GlobalAveragePool ---------------------------------------------------------------------------

Types global_shape(const OpArgs& args) {
  require_float(args, 0);
  require(args.rank(0) >= 3, ErrorCode::kBadInput,
          "input 0 must have a batch, a channel and one spatial dimension at least, is {}",
          type_text(args.type(0)));
  Shape shape = args.shape(0);
  for (int axis = 2; axis < shape.rank; ++axis) shape[axis] = 1;
  return {{args.type(0).dtype, shape}};
}

Values global_decomposition(Builder& b, const Node& node) {
  Ints axes;
  for (int axis = 2; axis < b.shape(node.inputs[0]).rank; ++axis) axes.push_back(axis);
  return {b("ReduceMean", {node.inputs[0]},
            {{"axes", std::move(axes)}, {"keepdims", std::int64_t{1}}})};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kKernelShape{"kernel_shape", "size of the window per spatial axis"};
constexpr AttributeSpec kStrides{"strides", "step of the window per spatial axis, 1"};
constexpr AttributeSpec kDilations{"dilations", "step between elements of a window, 1"};
constexpr AttributeSpec kPads{"pads", "padding before each spatial axis, then after each"};
constexpr AttributeSpec kAutoPad{"auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER"};
constexpr AttributeSpec kCeilMode{"ceil_mode", "1: a partial last window counts"};
constexpr AttributeSpec kCountIncludePad{"count_include_pad", "1: divide by padding too"};
constexpr AttributeSpec kInputShape{"input_shape", "[N,C,...] of the pool's input"};

// Without the places of the maxima, which count examples too.
std::optional<Shards> shard_max_pool(const ShardingArgs& a) {
  return a.node.outputs.size() == 1 ? shard_by_examples<1>(a) : std::nullopt;
}

OpDef max_pool_row() {
  return {.name = "MaxPool",
          .doc =
              "Largest element of each window; NaN if there is one. Its place in the whole "
              "tensor, the first of equal ones; -1 for a window that is all padding.",
          .max_outputs = 2,
          .attributes = {kKernelShape,
                         kStrides,
                         kDilations,
                         kPads,
                         kAutoPad,
                         kCeilMode,
                         {"storage_order", "of the places; 0 (default): rows of a plane first"}},
          .params = forward_params,
          .shape = max_pool_shape,
          .gradient = max_pool_gradient,
          .cost = forward_cost,
          .op_class = OpClass::kReduction,
          .traits = sharded({.rule = shard_max_pool, .by_examples = true}),
          .examples = {"[1,2,5,6]~; kernel_shape={2,2}",
                       "[2,3,7,7]~; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}",
                       "[1,2,6,6]~; kernel_shape={3,3} strides={2,2} ceil_mode=1",
                       "[1,2,2,3]~; kernel_shape={3,3} strides={2,2} ceil_mode=1",
                       "[2,2,9]~; kernel_shape={3} strides={2} pads={1,0}",
                       "[1,2,4,5,3]~; kernel_shape={2,3,2} strides={2,1,1} pads={0,1,1,0,1,0}",
                       "[1,1,8,8]~; kernel_shape={3,2} dilations={2,3} pads={1,0,1,2}",
                       "[1,2,5,6]~; kernel_shape={2,3} strides={2,2} auto_pad='SAME_LOWER'",
                       "[0,2,4,4]; kernel_shape={2,2}",
                       "[2,3,7,6]~; kernel_shape={3,3} strides={2,2} pads={1,1,1,1} outputs=2",
                       "[2,2,4,5,3]~; kernel_shape={2,3,2} outputs=2",
                       "[1,1,3,3]; kernel_shape={3,3} dilations={3,3} pads={3,3,3,3} outputs=2",
                       "[2,16,33,33]~; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}",
                       "[2,16,33,33]~; kernel_shape={3,3} pads={1,1,1,1} outputs=2"}};
}

OpDef average_pool_row() {
  return {.name = "AveragePool",
          .doc = "Mean of each window over the elements inside the input (or the padding too).",
          .attributes = {kKernelShape, kStrides, kDilations, kPads, kAutoPad, kCeilMode,
                         kCountIncludePad},
          .params = forward_params,
          .shape = forward_shape,
          .gradient = average_pool_gradient,
          .cost = forward_cost,
          .op_class = OpClass::kReduction,
          .traits = sharded({.rule = shard_by_examples<1>, .by_examples = true}),
          .examples = {"[1,2,6,6]; kernel_shape={2,2} strides={2,2}",
                       "[2,3,7,7]; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}",
                       "[2,3,7,7]; kernel_shape={3,3} pads={1,1,1,1} count_include_pad=1",
                       "[1,2,6,6]; kernel_shape={3,3} strides={2,2} ceil_mode=1",
                       "[1,2,2,3]; kernel_shape={3,3} strides={2,2} ceil_mode=1",
                       "[1,1,6]; kernel_shape={3} strides={2} ceil_mode=1 count_include_pad=1",
                       "[2,2,9]; kernel_shape={4} pads={1,2}",
                       "[1,2,4,5,3]; kernel_shape={2,3,2} strides={2,1,1} pads={0,1,1,0,1,0}",
                       "[1,2,5,6]; kernel_shape={2,3} strides={2,2} auto_pad='SAME_UPPER'",
                       "[0,2,4,4]; kernel_shape={2,2}",
                       "[2,16,33,33]; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}"}};
}

OpDef global_average_pool_row() {
  return {.name = "GlobalAveragePool",
          .doc = "Mean over all spatial axes.",
          .shape = global_shape,
          .decompose = global_decomposition,
          .cost = per_input_element<1>,
          .op_class = OpClass::kReduction,
          .traits = kComposite,
          .examples = {"[2,3,4,5]", "[2,3,4]", "[1,2,3,4,2]", "[0,3,4,4]", "[4,32,20,20]"}};
}

OpDef max_pool_grad_row() {
  return {.name = "MaxPoolGrad",
          .doc = "Gradient of MaxPool, from dy and x: all of it to the first maximum.",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {kKernelShape, kStrides, kDilations, kPads, kCeilMode, kCountIncludePad},
          .params = max_pool_grad_params,
          .shape = max_pool_grad_shape,
          .cost = backward_cost,
          .op_class = OpClass::kReduction,
          .traits = sharded_once({.rule = shard_by_examples<2>, .by_examples = true}),
          .examples = {"[1,2,4,5], [1,2,5,6]~; kernel_shape={2,2}",
                       "[0,2,3,3], [0,2,4,4]; kernel_shape={2,2}",
                       "[2,2,4], [2,2,9]~; kernel_shape={3} strides={2} pads={1,0}",
                       "[2,16,16,16], [2,16,33,33]~; kernel_shape={3,3} strides={2,2}"}};
}

OpDef average_pool_grad_row() {
  return {
      .name = "AveragePoolGrad",
      .doc = "Gradient of AveragePool, from dy.",
      .domain = kTrainscopeDomain,
      .attributes = {kKernelShape, kStrides, kDilations, kPads, kCeilMode, kCountIncludePad,
                     kInputShape},
      .params = average_pool_grad_params,
      .shape = average_pool_grad_shape,
      .gradient = average_pool_grad_gradient,
      .cost = backward_cost,
      .op_class = OpClass::kReduction,
      .traits = sharded_once(
          {.rule = shard_by_examples<1>, .by_examples = true, .shape_attribute = "input_shape"}),
      .examples = {"[1,2,3,3]; kernel_shape={2,2} strides={2,2} input_shape={1,2,6,6}",
                   "[0,2,3,3]; kernel_shape={2,2} input_shape={0,2,4,4}",
                   "[1,1,3]; kernel_shape={3} strides={2} ceil_mode=1 input_shape={1,1,6}",
                   "[2,2,5]; kernel_shape={3} strides={2} pads={1,1} input_shape={2,2,9}",
                   "[2,16,16,16]; kernel_shape={3,3} strides={2,2} input_shape={2,16,33,33}"}};
}

}  // namespace

std::vector<OpDef> pool_ops() {
  return {max_pool_row(), average_pool_row(), global_average_pool_row(), max_pool_grad_row(),
          average_pool_grad_row()};
}

}  // namespace trainscope
