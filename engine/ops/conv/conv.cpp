// Conv in one to three dimensions, and ai.trainscope's ConvGradInput and ConvGradWeight.
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// x [N, C, in...], w [M, C / group, kernel...], y [N, M, out...]

std::span<const std::int64_t> spatial(const Shape& shape) { return shape.span().subspan(2); }

Ints dims_of(std::span<const std::int64_t> dims) { return {dims.begin(), dims.end()}; }

ConvParams conv_params(const OpArgs& args, const Shape& x, std::span<const std::int64_t> kernel) {
  return {.window = window_params(args, x, kernel), .group = args.attributes.integer("group", 1)};
}

void require_image(const OpArgs& args, int input) {
  require(args.rank(input) >= 3, ErrorCode::kBadInput,
          "input {} must have a batch, a channel and one spatial dimension at least, is {}", input,
          type_text(args.type(input)));
}

void require_groups(const Shape& x, std::int64_t out_channels, std::int64_t group) {
  require(group >= 1 && x[1] % group == 0 && out_channels % group == 0, ErrorCode::kBadInput,
          "{} input channels and {} output channels cannot be divided into {} groups", x[1],
          out_channels, group);
}

void require_kernel_shape(const OpArgs& args, const Shape& w) {
  const Ints stated = args.attributes.integers("kernel_shape");
  const auto kernel = spatial(w);
  require(stated.empty() || std::equal(stated.begin(), stated.end(), kernel.begin(), kernel.end()),
          ErrorCode::kBadInput, "attribute kernel_shape is {}, the weight is {}",
          shape_text(stated), shape_text(w));
}

// y for x and w, everything checked.
Shape convolved_shape(const OpArgs& args, const Shape& x, const Shape& w) {
  require(w.rank == x.rank, ErrorCode::kBadInput, "the weight must have {} dimensions, is {}",
          x.rank, shape_text(w));
  const ConvParams params = conv_params(args, x, spatial(w));
  require_groups(x, w[0], params.group);
  require(w[1] == x[1] / params.group, ErrorCode::kBadInput,
          "the weight {} has {} input channels, {} are expected for an input {} in {} groups",
          shape_text(w), w[1], x[1] / params.group, shape_text(x), params.group);
  return window_output_shape(params.window, x, w[0]);
}

void require_convolved(const Shape& expected, const Shape& dy) {
  require(dy == expected, ErrorCode::kBadInput, "the output gradient must be {}, is {}",
          shape_text(expected), shape_text(dy));
}

// --- Conv ----------------------------------------------------------------------------------------

Params forward_params(const OpArgs& args) {
  return conv_params(args, args.shape(0), spatial(args.shape(1)));
}

Types forward_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_image(args, 0);
  const Shape shape = convolved_shape(args, args.shape(0), args.shape(1));
  require_kernel_shape(args, args.shape(1));
  if (args.has(2)) require_shape(args, 2, Shape{args.shape(1)[0]});
  return {{args.type(0).dtype, shape}};
}

std::int64_t terms(const Shape& w) { return w[0] == 0 ? 0 : w.elements() / w[0]; }

std::int64_t forward_terms(const OpArgs& args) { return terms(args.shape(1)); }

Cost forward_cost(const OpArgs& args) {
  return with_flops(args, matmul_flops(args.outputs[0].elements(), forward_terms(args)));
}

// The attributes of a gradient op, with padding in numbers.
Attributes gradient_attributes(const ConvParams& params) {
  const WindowParams& window = params.window;
  const auto first = [&](const Spatial& values) {
    return Ints(values.begin(), values.begin() + window.rank);
  };
  Ints pads = first(window.pad_begin);
  const Ints pad_end = first(window.pad_end);
  pads.insert(pads.end(), pad_end.begin(), pad_end.end());
  return {{"strides", first(window.stride)},
          {"dilations", first(window.dilation)},
          {"pads", std::move(pads)},
          {"group", params.group}};
}

ValueId bias_gradient(Builder& b, ValueId dy) {
  Ints axes{0};
  for (int axis = 2; axis < b.shape(dy).rank; ++axis) axes.push_back(axis);
  return b("ReduceSum", {dy, b.ints(axes)}, {{"keepdims", std::int64_t{0}}});
}

// The three ops of one convolution, each linear in x, w or dy.
ValueId convolve(Builder& b, ValueId x, ValueId w, const ConvParams& params) {
  return b("Conv", {x, w}, gradient_attributes(params));
}

ValueId input_gradient(Builder& b, ValueId dy, ValueId w, const ConvParams& params,
                       const Shape& x) {
  Attributes attributes = gradient_attributes(params);
  attributes.set("input_shape", dims_of(x.span()));
  return b("ConvGradInput", {dy, w}, std::move(attributes));
}

ValueId weight_gradient(Builder& b, ValueId x, ValueId dy, const ConvParams& params) {
  Attributes attributes = gradient_attributes(params);
  const Spatial& kernel = params.window.kernel;
  attributes.set("kernel_shape", Ints(kernel.begin(), kernel.begin() + params.window.rank));
  return b("ConvGradWeight", {x, dy}, std::move(attributes));
}

Values forward_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const Shape x = args->shape(0);
  const ConvParams params = conv_params(*args, x, spatial(args->shape(1)));
  Values gradients(g.x.size(), kNoValue);
  if (g.wants(0)) gradients[0] = input_gradient(g.b, g.dy[0], g.x[1], params, x);
  if (g.wants(1)) gradients[1] = weight_gradient(g.b, g.x[0], g.dy[0], params);
  if (args->has(2) && g.wants(2)) gradients[2] = bias_gradient(g.b, g.dy[0]);
  return gradients;
}

// --- ConvGradInput(dy, w) ------------------------------------------------------------------------

Shape input_shape(const OpArgs& args) {
  return checked_shape(args.attributes.integers("input_shape"));
}

Params grad_input_params(const OpArgs& args) {
  return conv_params(args, input_shape(args), spatial(args.shape(1)));
}

Types grad_input_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_image(args, 0);
  const Shape x = input_shape(args);
  require(x.rank == args.rank(0), ErrorCode::kBadInput,
          "attribute input_shape must have {} dimensions, is {}", args.rank(0), shape_text(x));
  require_convolved(convolved_shape(args, x, args.shape(1)), args.shape(0));
  return {{args.type(0).dtype, x}};
}

Values grad_input_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const auto params = std::get<ConvParams>(grad_input_params(*args));
  const ValueId ddx = g.dy[0];
  return {g.wants(0) ? convolve(g.b, ddx, g.x[1], params) : kNoValue,
          g.wants(1) ? weight_gradient(g.b, ddx, g.x[0], params) : kNoValue};
}

Cost grad_input_cost(const OpArgs& args) {
  return with_flops(args, matmul_flops(args.type(0).elements(), terms(args.shape(1))));
}

// --- ConvGradWeight(x, dy) -----------------------------------------------------------------------

Params grad_weight_params(const OpArgs& args) {
  return conv_params(args, args.shape(0), args.attributes.integers("kernel_shape"));
}

Types grad_weight_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_image(args, 0);
  require_rank(args, 1, args.rank(0));
  const Shape& x = args.shape(0);
  const std::int64_t out_channels = args.shape(1)[1];
  const std::int64_t group = args.attributes.integer("group", 1);
  require_groups(x, out_channels, group);
  Ints dims{out_channels, x[1] / group};
  const Ints kernel = args.attributes.integers("kernel_shape");
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  const Shape w = checked_shape(dims);
  require_convolved(convolved_shape(args, x, w), args.shape(1));
  return {{args.type(0).dtype, w}};
}

Values grad_weight_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const auto params = std::get<ConvParams>(grad_weight_params(*args));
  const ValueId ddw = g.dy[0];
  return {g.wants(0) ? input_gradient(g.b, g.x[1], ddw, params, args->shape(0)) : kNoValue,
          g.wants(1) ? convolve(g.b, g.x[0], ddw, params) : kNoValue};
}

Cost grad_weight_cost(const OpArgs& args) {
  return with_flops(args, matmul_flops(args.type(1).elements(), terms(args.outputs[0].shape)));
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kStrides{"strides", "step of the window per spatial axis, 1"};
constexpr AttributeSpec kDilations{"dilations", "step between kernel elements, 1"};
constexpr AttributeSpec kPads{"pads", "zeros before each spatial axis, then after each"};
constexpr AttributeSpec kGroup{"group", "channels are convolved in so many groups, 1"};
constexpr AttributeSpec kKernelShape{"kernel_shape", "spatial sizes of the weight"};

OpDef forward_row() {
  return {.name = "Conv",
          .doc = "Convolution of [N,C,...] with a weight [M,C/group,...] and an optional bias [M].",
          .min_inputs = 2,
          .max_inputs = 3,
          .attributes = {kStrides,
                         kDilations,
                         kPads,
                         kGroup,
                         kKernelShape,
                         {"auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER"}},
          .params = forward_params,
          .shape = forward_shape,
          .gradient = forward_gradient,
          .cost = forward_cost,
          .terms = forward_terms,
          .op_class = OpClass::kMatmul,
          .traits = {.sharding = Sharding{.rule = shard_by_examples<1>, .by_examples = true},
                     .rows = RowKind::kOther,
                     .rematerialize = Rematerialize::kHeavy,
                     .ranges = kNoRanges},
          .examples = {
              "[1,2,5,6], [3,2,3,3]", "[2,2,5,6], [3,2,3,2], [3]; pads={1,0,1,2}",
              "[2,3,7], [2,3,3], [2]; strides={2} pads={1,1}",
              "[1,2,4,5,3], [2,2,2,3,2], [2]; strides={2,1,1} pads={0,1,1,1,1,0}",
              "[1,4,6,6], [6,2,3,3], [6]; group=2 pads={1,1,1,1}",
              "[2,4,5,5], [4,1,3,3], [4]; group=4 pads={1,1,1,1}",
              "[1,2,7,8], [2,2,3,2]; dilations={2,3} pads={2,1,0,2}",
              "[1,3,6,7], [2,3,3,3]; auto_pad='SAME_UPPER' strides={2,2}",
              "[1,3,6,7], [2,3,2,4]; auto_pad='SAME_LOWER' kernel_shape={2,4}",
              "[2,3,4,4], [5,3,1,1], [5]", "[1,1,3,3], [2,1,3,3]; strides={3,3} pads={2,2,2,2}",
              "[0,2,5,5], [3,2,3,3], [3]", "[3,8,14,14], [12,8,3,3], [12]; pads={1,1,1,1}"}};
}

OpDef grad_input_row() {
  return {
      .name = "ConvGradInput",
      .doc = "Gradient of a Conv by its input, from dy and the weight.",
      .domain = kTrainscopeDomain,
      .min_inputs = 2,
      .max_inputs = 2,
      .attributes = {kStrides,
                     kDilations,
                     kPads,
                     kGroup,
                     {"input_shape", "[N,C,...] of the convolution's input"}},
      .params = grad_input_params,
      .shape = grad_input_shape,
      .gradient = grad_input_gradient,
      .cost = grad_input_cost,
      .op_class = OpClass::kMatmul,
      .traits = sharded(
          {.rule = shard_by_examples<1>, .by_examples = true, .shape_attribute = "input_shape"}),
      .examples = {"[2,3,3,4], [3,2,3,3]; input_shape={2,2,5,6}",
                   "[0,3,3,4], [3,2,3,3]; input_shape={0,2,5,6}",
                   "[1,6,3], [6,2,3]; input_shape={1,4,6} group=2 strides={2} pads={1,1}",
                   "[2,2,4], [2,3,3]; input_shape={2,3,7} strides={2} pads={1,1}",
                   "[3,12,14,14], [12,8,3,3]; input_shape={3,8,14,14} pads={1,1,1,1}"}};
}

OpDef grad_weight_row() {
  return {.name = "ConvGradWeight",
          .doc = "Gradient of a Conv by its weight, from the input and dy.",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {kStrides, kDilations, kPads, kGroup, kKernelShape},
          .params = grad_weight_params,
          .shape = grad_weight_shape,
          .gradient = grad_weight_gradient,
          .cost = grad_weight_cost,
          .op_class = OpClass::kMatmul,
          .traits = sharded_once({.rule = sum_over_examples<2>, .by_examples = true}),
          .examples = {"[2,2,5,6], [2,3,3,4]; kernel_shape={3,3}",
                       "[0,2,5,6], [0,3,3,4]; kernel_shape={3,3}",
                       "[1,4,6], [1,6,3]; kernel_shape={3} group=2 strides={2} pads={1,1}",
                       "[2,3,7], [2,2,4]; kernel_shape={3} strides={2} pads={1,1}",
                       "[3,8,14,14], [3,12,14,14]; kernel_shape={3,3} pads={1,1,1,1}"}};
}

}  // namespace

std::vector<OpDef> conv_ops() { return {forward_row(), grad_input_row(), grad_weight_row()}; }

}  // namespace trainscope
