// Op rows: what puts elements of windows and of pools back in their places, and images cut or
// padded to a size: MaxUnpool, Col2Im, CenterCropPad.
#include <numeric>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- MaxUnpool(x, places, output_shape) ----------------------------------------------------------

// The shape of what MaxPool had pooled, in which the places count.
Shape unpooled_shape(const OpArgs& args) {
  const Ints kernel = args.attributes.integers("kernel_shape");
  require(!kernel.empty(), ErrorCode::kBadInput, "attribute kernel_shape is missing");
  const Shape& x = args.shape(0);
  const WindowParams window = window_params(args, x, kernel);
  Shape y = x;
  for (int axis = 0; axis < window.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t windows =
        checked_multiply(std::max<std::int64_t>(0, x[axis + 2] - 1), window.stride[i]);
    const std::int64_t padding = checked_add(window.pad_begin[i], window.pad_end[i]);
    y[axis + 2] = checked_add(windows, window.kernel[i] - padding);
    require(y[axis + 2] >= 0, ErrorCode::kBadInput,
            "{} windows of {} elements along axis {} hold less than their padding of {}",
            x[axis + 2], window.kernel[i], axis + 2, padding);
  }
  return checked_shape(y);
}

Types max_unpool_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 1, DType::kI64);
  require_shape(args, 1, args.shape(0));
  Shape y = unpooled_shape(args);
  if (args.has(2)) {
    const Ints wanted = args.constant_ints(2);
    bool fits = std::ssize(wanted) == y.rank;
    for (int axis = 0; fits && axis < y.rank; ++axis) {
      const std::int64_t size = wanted[static_cast<std::size_t>(axis)];
      fits = axis < 2 ? size == y[axis] : size >= y[axis];
    }
    require(fits, ErrorCode::kBadInput, "output_shape {} is smaller than {}, what was pooled",
            shape_text(wanted), shape_text(y));
    y = checked_shape(wanted);
  }
  return {{.dtype = args.type(0).dtype, .shape = y}};
}

// `v` with zeros after its axes up to a shape.
ValueId grown_to(Builder& b, ValueId v, const Shape& shape) {
  const Shape from = b.shape(v);
  if (from == shape) return v;
  Ints pads(static_cast<std::size_t>(shape.rank), 0);
  for (int axis = 0; axis < shape.rank; ++axis) pads.push_back(shape[axis] - from[axis]);
  return b("Pad", {v, b.ints(pads)});
}

Values max_unpool_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape pooled = unpooled_shape(*args);
  const TensorType y = max_unpool_shape(*args)[0];
  const std::int64_t count = args->type(0).elements();
  if (count == 0) return {zeros(b, y)};
  const ValueId empty = zeros(b, {.dtype = y.dtype, .shape = {pooled.elements(), 1}});
  const ValueId filled = b("PutRows", {empty, b.reshape(node.inputs[1], Shape{count}),
                                       b.reshape(node.inputs[0], {count, 1})});
  return {grown_to(b, b.reshape(filled, pooled), y.shape)};
}

// --- Col2Im(columns, image_shape, block_shape) ---------------------------------------------------

struct Blocks {
  WindowParams window;
  Shape image;  // [N, C, image...]
  std::int64_t taps = 1;
  std::int64_t windows = 1;
  Shape y;  // [N, C, windows...]
};

Blocks blocks_of(const OpArgs& args) {
  require_float(args, 0);
  require_rank(args, 0, 3);
  const Ints image = args.constant_ints(1);
  const Ints block = args.constant_ints(2);
  require(image.size() == block.size() && !image.empty() && image.size() <= kMaxSpatialRank,
          ErrorCode::kBadInput, "image_shape {} and block_shape {} must have 1 to {} axes, as many",
          shape_text(image), shape_text(block), kMaxSpatialRank);
  Blocks blocks{.window = {}, .image = {}, .y = {}};
  for (std::int64_t size : block) {
    require(size >= 1, ErrorCode::kBadInput, "block_shape {} is not positive", shape_text(block));
    blocks.taps = checked_multiply(blocks.taps, size);
  }
  const Shape& columns = args.shape(0);
  require(columns[1] % blocks.taps == 0, ErrorCode::kBadInput,
          "axis 1 of {} must be channels times the {} elements of a block", shape_text(columns),
          blocks.taps);
  Ints dims{columns[0], columns[1] / blocks.taps};
  dims.insert(dims.end(), image.begin(), image.end());
  blocks.image = checked_shape(dims);
  blocks.window = window_params(args, blocks.image, block);
  blocks.y = window_output_shape(blocks.window, blocks.image, blocks.image[1]);
  for (int axis = 2; axis < blocks.y.rank; ++axis) {
    blocks.windows = checked_multiply(blocks.windows, blocks.y[axis]);
  }
  require(columns[2] == blocks.windows, ErrorCode::kBadInput,
          "{} must have {} windows along axis 2: image {}, blocks {}", shape_text(columns),
          blocks.windows, shape_text(image), shape_text(block));
  return blocks;
}

Types col2im_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = blocks_of(args).image}};
}

// The place in its plane of each element of each window, [taps * windows]; the padding's elements
// go to the place after the last one.
Ints column_places(const Blocks& blocks) {
  const WindowParams& w = blocks.window;
  const std::int64_t outside = Shape(blocks.image.span().subspan(2)).elements();
  Ints places;
  for (std::int64_t i = 0; i < blocks.taps * blocks.windows; ++i) {
    std::int64_t tap = i / blocks.windows;
    std::int64_t window = i % blocks.windows;
    std::int64_t place = 0;
    std::int64_t stride = 1;
    for (int axis = w.rank - 1; axis >= 0 && place >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      const std::int64_t at = window % blocks.y[axis + 2] * w.stride[a] - w.pad_begin[a] +
                              tap % w.kernel[a] * w.dilation[a];
      const bool inside = at >= 0 && at < blocks.image[axis + 2];
      place = inside ? place + at * stride : -1;
      stride *= blocks.image[axis + 2];
      tap /= w.kernel[a];
      window /= blocks.y[axis + 2];
    }
    places.push_back(place < 0 ? outside : place);
  }
  return places;
}

// With an element more in each plane, for what falls into the padding; it is cut off at the end.
Values col2im_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Blocks blocks = blocks_of(*args);
  const Shape image = blocks.image;
  if (args->type(0).elements() == 0) {
    return {zeros(b, {.dtype = args->type(0).dtype, .shape = image})};
  }
  const std::int64_t planes = image[0] * image[1];
  const std::int64_t plane = Shape(image.span().subspan(2)).elements();
  const ValueId columns = b.reshape(node.inputs[0], {planes, blocks.taps * blocks.windows});
  const ValueId rows = transposed(b, columns, {1, 0});
  const ValueId empty = zeros(b, {.dtype = args->type(0).dtype, .shape = {plane + 1, planes}});
  const ValueId sums = b("AddRows", {empty, b.ints(column_places(blocks)), rows});
  const ValueId inside = b("Slice", {sums, b.ints({0}), b.ints({plane}), b.ints({0})});
  return {b.reshape(transposed(b, inside, {1, 0}), image)};
}

// --- CenterCropPad(x, shape) ---------------------------------------------------------------------

// The size wanted of each axis of x.
Ints centred_sizes(const OpArgs& args) {
  const Shape& x = args.shape(0);
  const Ints wanted = args.constant_ints(1);
  Ints axes(static_cast<std::size_t>(x.rank));
  std::iota(axes.begin(), axes.end(), 0);
  axes = args.attributes.integers("axes", axes);
  require(axes.size() == wanted.size(), ErrorCode::kBadInput, "{} sizes for {} axes of {}",
          wanted.size(), axes.size(), type_text(args.type(0)));
  normalized_axes(axes, x.rank);  // in range, none twice
  Ints sizes = ints_of(x);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    require(wanted[i] >= 0, ErrorCode::kBadInput, "size {} is negative", wanted[i]);
    sizes[static_cast<std::size_t>(normalized_axis(axes[i], x.rank))] = wanted[i];
  }
  return sizes;
}

Types center_crop_pad_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(centred_sizes(args))}};
}

// Of an odd number of elements the larger half is cut off, or added, at the end.
Values center_crop_pad_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Ints sizes = centred_sizes(*args);
  Ints before;
  Ints after;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::int64_t added = sizes[axis] - args->shape(0).dims[axis];
    // Cropping, the first element kept is number removed / 2.
    before.push_back(added >= 0 ? added / 2 : -(-added / 2));
    after.push_back(added - before.back());
  }
  Ints pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return {b("Pad", {node.inputs[0], b.ints(pads)})};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kStrides{"strides", "step of the window per spatial axis, 1"};
constexpr AttributeSpec kPads{"pads", "padding before each spatial axis, then after each"};

}  // namespace

std::vector<OpDef> window_places_ops() {
  return {
      {.name = "MaxUnpool",
       .doc =
           "x [N,C,windows...], places, output_shape -> zeros of the shape that was pooled, with "
           "x at the places that MaxPool told; more zeros after the axes for a larger "
           "output_shape. A place outside makes all NaN",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {{"kernel_shape", "size of the window per spatial axis"}, kStrides, kPads},
       .shape = max_unpool_shape,
       .decompose = max_unpool_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[1,1,2,2], i64[1,1,2,2]={5,7,13,15}; kernel_shape={2,2} strides={2,2}",
                    "[1,1,2,2], i64[1,1,2,2]={5,7,13,15}, i64[4]={1,1,5,5}; kernel_shape={2,2} "
                    "strides={2,2}",
                    "[1,2,3], i64[1,2,3]={0,2,3,6,8,9}; kernel_shape={3} strides={2} pads={1,1}",
                    "[0,2,2,2], i64[0,2,2,2]<3; kernel_shape={2,2} strides={2,2}",
                    "[1,1,2], i64[1,1,2]={0,9}; kernel_shape={2} strides={2}"}},
      {.name = "Col2Im",
       .doc = "columns [N,C*taps,windows], image_shape, block_shape -> [N,C,image...]: the sum of "
              "what the windows have for each element",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{"dilations", "step between elements of a window, 1"}, kPads, kStrides},
       .shape = col2im_shape,
       .decompose = col2im_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[1,5,5], i64[2]={5,5}, i64[2]={1,5}", "[2,8,20], i64[2]={5,6}, i64[2]={2,2}",
                    "[1,8,6], i64[2]={4,5}, i64[2]={2,2}; strides={2,2} pads={0,1,0,0}",
                    "[1,6,4], i64[2]={5,4}, i64[2]={3,1}; dilations={2,1}",
                    "[1,6,5], i64[1]={5}, i64[1]={3}; pads={1,1}",
                    "[0,4,4], i64[2]={3,3}, i64[2]={2,2}",
                    "[2,27,400], i64[2]={20,20}, i64[2]={3,3}; pads={1,1,1,1}"}},
      {.name = "CenterCropPad",
       .doc = "x cut off or padded with zeros at both ends of its axes to the sizes of input 1",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"axes", "that input 1 tells the sizes of; all by default"}},
       .shape = center_crop_pad_shape,
       .decompose = center_crop_pad_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[5,7], i64[2]={3,4}", "[3,4], i64[2]={6,7}",
                    "[5,3,2], i64[2]={2,6}; axes={0,-2}", "[0,3], i64[2]={2,3}", "[4], i64[1]={4}",
                    "i64[5]<9, i64[1]={8}", "[60,80,3], i64[2]={50,100}; axes={0,1}"}},
  };
}

}  // namespace trainscope
