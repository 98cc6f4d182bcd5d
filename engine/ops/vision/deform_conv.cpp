// DeformConv: a convolution whose windows read between the elements, at places that another input
// moves. It samples the input, then multiplies matrices.
#include <string>
#include <utility>
#include <vector>

#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"
#include "engine/ops/vision/taps.h"

namespace trainscope {
namespace {

// Inputs: x [N, C, in...], weight [M, C/group, kernel...], offset [N, parts*taps*rank, out...] with
// a distance along each axis, the first axis first, bias [M], mask [N, parts*taps, out...].
struct Deformed {
  WindowParams window;
  std::int64_t group = 1;
  std::int64_t parts = 1;   // groups of channels with offsets of their own
  std::int64_t taps = 1;    // of a window
  std::int64_t points = 1;  // windows of an example
  int rank = 2;
  Shape y;
};

std::int64_t divisor_of(const OpArgs& args, std::string_view attribute, std::int64_t channels) {
  const std::int64_t count = args.attributes.integer(attribute, 1);
  require(count >= 1 && channels % count == 0, ErrorCode::kBadInput,
          "attribute {} is {}, expected a divisor of the {} channels", attribute, count, channels);
  return count;
}

// The shape of offset or mask: `numbers` of them for each part of the channels and each tap.
Shape per_tap_shape(const Deformed& d, std::int64_t numbers) {
  Shape shape = d.y;
  shape[1] = checked_multiply(numbers, checked_multiply(d.parts, d.taps));
  return shape;
}

void require_inputs(const OpArgs& args, const Deformed& d) {
  require_shape(args, 2, per_tap_shape(d, d.rank));
  if (args.has(3)) require_shape(args, 3, {args.shape(1)[0]});
  if (args.has(4)) require_shape(args, 4, per_tap_shape(d, 1));
}

Deformed deformed(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  const Shape& x = args.shape(0);
  const Shape& weight = args.shape(1);
  require(x.rank >= 3 && x.rank <= 2 + kMaxSpatialRank && weight.rank == x.rank,
          ErrorCode::kBadInput,
          "x {} and weight {} must have a batch, channels and the same spatial axes", shape_text(x),
          shape_text(weight));
  for (int axis = 2; axis < x.rank; ++axis) {
    require(x[axis] > 0, ErrorCode::kBadInput, "axis {} of x {} is empty", axis, shape_text(x));
  }
  Deformed d{.window = {}, .rank = x.rank - 2, .y = {}};
  const Ints given = args.attributes.integers("kernel_shape");
  const Ints kernel(weight.span().begin() + 2, weight.span().end());
  require(given.empty() || given == kernel, ErrorCode::kBadInput,
          "attribute kernel_shape {} is not that of the weight {}", shape_text(given),
          shape_text(weight));
  d.window = window_params(args, x, kernel);
  d.group = divisor_of(args, "group", x[1]);
  d.parts = divisor_of(args, "offset_group", x[1]);
  require(weight[0] % d.group == 0 && weight[1] == x[1] / d.group, ErrorCode::kBadInput,
          "weight {} does not fit x {} in {} groups", shape_text(weight), shape_text(x), d.group);
  d.y = window_output_shape(d.window, x, weight[0]);
  for (std::int64_t size : kernel) d.taps = checked_multiply(d.taps, size);
  for (int axis = 2; axis < d.y.rank; ++axis) d.points = checked_multiply(d.points, d.y[axis]);
  require_inputs(args, d);
  return d;
}

Types deform_conv_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = deformed(args).y}};
}

Cost deform_conv_cost(const OpArgs& args) {
  const Shape& weight = args.shape(1);
  const std::int64_t per_element = weight[0] == 0 ? 0 : weight.elements() / weight[0];
  return with_flops(args, saturating_multiply(saturating_multiply(2, per_element),
                                              args.outputs[0].shape.elements()));
}

// Where each tap of each window reads before it is moved, along one axis: [1, taps, points].
ValueId places_along(Builder& b, const Deformed& d, int axis, DType dtype) {
  const auto at = static_cast<std::size_t>(axis);
  Ints taps;
  Ints points;
  std::int64_t inner = 1;
  for (int a = axis + 1; a < d.rank; ++a) inner *= d.window.kernel[static_cast<std::size_t>(a)];
  for (std::int64_t t = 0; t < d.taps; ++t) {
    taps.push_back(t / inner % d.window.kernel[at] * d.window.dilation[at] -
                   d.window.pad_begin[at]);
  }
  inner = 1;
  for (int a = axis + 1; a < d.rank; ++a) inner *= d.y[a + 2];
  for (std::int64_t p = 0; p < d.points; ++p) {
    points.push_back(p / inner % d.y[axis + 2] * d.window.stride[at]);
  }
  const auto row = [&](const Ints& numbers, const Shape& shape) {
    return b.constant(convert(Tensor::ints(numbers), dtype).reshaped(shape), "places");
  };
  return b("Add", {row(taps, {1, d.taps, 1}), row(points, {1, 1, d.points})});
}

// What each tap of each window reads, along each axis: [N * parts, taps * points, 1].
Values moved_places(Builder& b, const Deformed& d, ValueId offset) {
  const DType dtype = b.type(offset).dtype;
  const std::int64_t images = d.y[0] * d.parts;
  const ValueId by_axis = b.reshape(offset, {images, d.taps, d.rank, d.points});
  const Values moves = b.multi("Split", {by_axis}, d.rank, {{"axis", std::int64_t{2}}});
  Values places;
  for (int axis = 0; axis < d.rank; ++axis) {
    const ValueId move =
        b.reshape(moves[static_cast<std::size_t>(axis)], {images, d.taps, d.points});
    const ValueId place = b("Add", {move, places_along(b, d, axis, dtype)});
    places.push_back(b.reshape(place, {images, d.taps * d.points, 1}));
  }
  return places;
}

Values deform_conv_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Deformed d = deformed(*args);
  if (args->type(2).elements() == 0 || d.y.elements() == 0) {
    return {zeros(b, {.dtype = args->type(0).dtype, .shape = d.y})};
  }
  const Shape x = args->shape(0);
  const Shape weight = args->shape(1);
  const std::int64_t images = x[0] * d.parts;
  Shape by_part = x;
  by_part[0] = images;
  by_part[1] = x[1] / d.parts;
  ValueId read =
      sample_at(b, b.reshape(node.inputs[0], by_part), moved_places(b, d, node.inputs[2]), {});
  if (const ValueId mask = input_of(node, 4); mask != kNoValue) {
    read = b("Mul", {read, b.reshape(mask, {images, 1, d.taps * d.points})});
  }
  // [group, M / group, C / group * taps] x [N, group, C / group * taps, points]
  const std::int64_t depth = x[1] / d.group * d.taps;
  const ValueId columns = b.reshape(read, {x[0], d.group, depth, d.points});
  const ValueId matrices = b.reshape(node.inputs[1], {d.group, weight[0] / d.group, depth});
  ValueId y = b("MatMul", {matrices, columns});
  if (const ValueId bias = input_of(node, 3); bias != kNoValue) {
    y = b("Add", {y, b.reshape(bias, {d.group, weight[0] / d.group, 1})});
  }
  return {b.reshape(y, d.y)};
}

}  // namespace

std::vector<OpDef> deform_conv_ops() {
  return {
      {.name = "DeformConv",
       .doc =
           "x [N,C,in...], weight [M,C/group,kernel...], offset [N,parts*taps*rank,out...], bias "
           "[M], mask [N,parts*taps,out...]: a convolution whose taps read x at places moved by "
           "the offset, times the mask; zeros around x",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 5,
       .attributes = {{"kernel_shape", "size of the window; that of the weight"},
                      {"strides", "step of the window per spatial axis, 1"},
                      {"dilations", "step between elements of a window, 1"},
                      {"pads", "padding before each spatial axis, then after each"},
                      {"group", "groups of channels with weights of their own, 1"},
                      {"offset_group", "groups of channels with offsets of their own, 1"}},
       .shape = deform_conv_shape,
       .decompose = deform_conv_decomposition,
       .cost = deform_conv_cost,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"[1,1,4,4], [1,1,2,2], [1,8,3,3]",
                    "[2,4,4,5], [6,2,2,2], [2,16,5,2], [6], [2,8,5,2]; group=2 offset_group=2 "
                    "pads={1,0,1,0} strides={1,2}",
                    "[1,2,5,5], [3,2,2,2], [1,8,3,3], -, [1,4,3,3]; dilations={2,2}",
                    "[1,2,6], [2,2,3], [1,3,4], [2]", "[0,2,4,4], [2,2,2,2], [0,8,3,3]",
                    "[1,4,6,6], [8,4,3,3], [1,18,4,4], [8]"}},
  };
}

}  // namespace trainscope
