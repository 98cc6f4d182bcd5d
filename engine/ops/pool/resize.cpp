// Resize: one Interpolate for each axis that changes.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/pool/resize_taps.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr int kRegion = 1;
constexpr int kScales = 2;
constexpr int kSizes = 3;

// --- Attributes ----------------------------------------------------------------------------------

template <typename T>
using Names = std::vector<std::pair<std::string_view, T>>;

template <typename T>
T named(const OpArgs& args, std::string_view attribute, const Names<T>& names) {
  const std::string given = args.attributes.text(attribute, names.front().first);
  std::vector<std::string> all;
  for (const auto& [name, value] : names) {
    if (name == given) return value;
    all.emplace_back(name);
  }
  fail(ErrorCode::kBadInput, "attribute {} is '{}'; {} exist", attribute, printable(given),
       join(all, ", "));
}

ResizeMode mode_of(const OpArgs& args) {
  return {
      .filter = named<Filter>(
          args, "mode",
          {{"nearest", Filter::kNearest}, {"linear", Filter::kLinear}, {"cubic", Filter::kCubic}}),
      .coordinates = named<Coordinates>(args, "coordinate_transformation_mode",
                                        {{"half_pixel", Coordinates::kHalfPixel},
                                         {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
                                         {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
                                         {"align_corners", Coordinates::kAlignCorners},
                                         {"asymmetric", Coordinates::kAsymmetric},
                                         {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
                                         {"tf_crop_and_resize", Coordinates::kTfCropAndResize}}),
      .nearest = named<Nearest>(args, "nearest_mode",
                                {{"round_prefer_floor", Nearest::kRoundPreferFloor},
                                 {"round_prefer_ceil", Nearest::kRoundPreferCeil},
                                 {"floor", Nearest::kFloor},
                                 {"ceil", Nearest::kCeil}}),
      .cubic_coefficient = args.attributes.number("cubic_coeff_a", -0.75),
      .exclude_outside = args.attributes.integer("exclude_outside", 0) != 0,
      .antialias = args.attributes.integer("antialias", 0) != 0,
      .extrapolation = args.attributes.number("extrapolation_value", 0.0)};
}

// --- Sizes ---------------------------------------------------------------------------------------

// Opset 11 leaves inputs out by giving empty ones.
bool given(const OpArgs& args, int input) {
  return args.has(input) && args.type(input).elements() > 0;
}

// `count` finite numbers that are known when the graph is built.
Floats numbers(const OpArgs& args, int input, int count) {
  const Tensor exact = convert(known_input(args, input), DType::kF64);
  require_shape(args, input, Shape{count});
  const Floats values(exact.values<double>().begin(), exact.values<double>().end());
  for (double value : values) {
    require(std::isfinite(value), ErrorCode::kBadInput, "input {} holds {}", input, value);
  }
  return values;
}

// Each output along an axis has taps of its own in memory.
constexpr double kMostOutputs = 4194304.0;

// Taps are as many as places that a wide filter covers.
constexpr double kMostTaps = 65536.0;

void set_length(ResizedAxis& axis, double length) {
  require(length >= 0.0 && length <= kMostOutputs, ErrorCode::kBadInput,
          "an axis cannot be resized to {} elements; at most {} are supported", length,
          kMostOutputs);
  axis.length = length;
  axis.out = static_cast<std::int64_t>(std::floor(length));
}

void set_scale(ResizedAxis& axis, double scale) {
  require(scale > 0.0, ErrorCode::kBadInput, "the scale {} is not positive", scale);
  axis.scale = scale;
  set_length(axis, static_cast<double>(axis.in) * scale);
}

void set_size(ResizedAxis& axis, double size) {
  set_length(axis, size);
  axis.scale = axis.in == 0 ? 1.0 : axis.length / static_cast<double>(axis.in);
}

std::vector<ResizedAxis> resized_axes(const OpArgs& args) {
  const int rank = args.rank(0);
  require(given(args, kScales) != given(args, kSizes), ErrorCode::kBadInput,
          "either scales (input 2) or sizes (input 3) must be given");
  const int source = given(args, kScales) ? kScales : kSizes;
  const Floats wanted = numbers(args, source, rank);
  const bool crops = mode_of(args).coordinates == Coordinates::kTfCropAndResize;
  require(!crops || given(args, kRegion), ErrorCode::kBadInput,
          "tf_crop_and_resize needs the region of interest (input 1)");
  const Floats region = crops ? numbers(args, kRegion, 2 * rank) : Floats{};
  std::vector<ResizedAxis> axes(static_cast<std::size_t>(rank));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    axes[a].in = args.shape(0).dims[a];
    if (source == kScales) {
      set_scale(axes[a], wanted[a]);
    } else {
      set_size(axes[a], wanted[a]);
    }
    require(axes[a].in > 0 || axes[a].out == 0, ErrorCode::kBadInput,
            "axis {} of {} has no elements and cannot be resized to {}", a, type_text(args.type(0)),
            axes[a].out);
    const bool shrinks = axes[a].out > 0 && mode_of(args).antialias;
    require_supported(!shrinks || axes[a].scale * kMostTaps >= 4.0,
                      "antialias with the scale {} makes filters of more than {} places",
                      axes[a].scale, kMostTaps);
    if (!crops) continue;
    axes[a].region_begin = region[a];
    axes[a].region_end = region[a + axes.size()];
  }
  return axes;
}

Types resize_shape(const OpArgs& args) {
  const ResizeMode mode = mode_of(args);
  require(is_float(args.type(0).dtype) || (mode.filter == Filter::kNearest &&
                                           mode.coordinates != Coordinates::kTfCropAndResize),
          ErrorCode::kBadInput, "mode nearest without a region can resize {}, others need floats",
          type_text(args.type(0)));
  Ints dims;
  for (const ResizedAxis& axis : resized_axes(args)) dims.push_back(axis.out);
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(dims)}};
}

ValueId resize_axis(Builder& b, ValueId x, int axis, const Taps& taps) {
  if (is_float(b.type(x).dtype)) return interpolate(b, x, axis, taps);
  return b("Gather", {x, b.ints(taps.index)}, {{"axis", std::int64_t{axis}}});
}

Values resize_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const ResizeMode mode = mode_of(*args);
  const std::vector<ResizedAxis> axes = resized_axes(*args);
  std::vector<std::size_t> order(axes.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
  // What shrinks first: the tensors in between stay small.
  std::ranges::stable_sort(order, {}, [&axes](std::size_t a) { return axes[a].scale; });
  ValueId x = node.inputs[0];
  for (std::size_t a : order) {
    if (axes[a].in == 0) continue;
    const Taps taps = resize_taps(mode, axes[a]);
    if (is_identity(taps, axes[a].in)) continue;
    x = resize_axis(b, x, static_cast<int>(a), taps);
  }
  return {own_value(b, node, x)};
}

}  // namespace

std::vector<OpDef> resize_ops() {
  return {
      {.name = "Resize",
       .doc =
           "x, region, scales, sizes -> x resized to the sizes, or by the scales; all but x must "
           "be known when the graph is built",
       .min_inputs = 1,
       .max_inputs = 4,
       .attributes = {{"mode", "nearest (default), linear or cubic"},
                      {"coordinate_transformation_mode",
                       "half_pixel (default), half_pixel_symmetric, pytorch_half_pixel, "
                       "align_corners, asymmetric, tf_half_pixel_for_nn or tf_crop_and_resize"},
                      {"nearest_mode",
                       "round_prefer_floor (default), round_prefer_ceil, floor or ceil"},
                      {"cubic_coeff_a", "-0.75"},
                      {"exclude_outside", "1: places outside weigh nothing"},
                      {"antialias", "1: filters are wider where an axis shrinks; 0"},
                      {"extrapolation_value", "outside the input, for tf_crop_and_resize, 0"}},
       .shape = resize_shape,
       .decompose = resize_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples =
           {"[1,2,3,4], -, [4]={1,1,2,3}", "[1,1,3,4], -, [4]={1,1,0.6,0.6}; mode='linear'",
            "[1,2,3,4], -, -, i64[4]={1,2,7,3}; mode='cubic'",
            "[1,1,4,5], -, [4]={1,1,0.8,0.8}; mode='cubic' exclude_outside=1 cubic_coeff_a=-0.5",
            "[2,5], -, -, i64[2]={2,9}; mode='linear' "
            "coordinate_transformation_mode='align_corners'",
            "[2,5], -, -, i64[2]={1,3}; mode='linear' "
            "coordinate_transformation_mode='pytorch_half_pixel'",
            "[3,5], [0], [2]={2,1.5}; coordinate_transformation_mode='asymmetric' "
            "nearest_mode='floor'",
            "[4,4], -, -, i64[2]={3,2}; coordinate_transformation_mode='tf_half_pixel_for_nn'",
            "[4,5], [4]={0.3,0.5,0.9,1.5}, -, i64[2]={3,4}; mode='linear' "
            "coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=7.0",
            "[2,7], -, [2]={1,0.4}; mode='linear' antialias=1",
            "[9,8], -, [2]={0.5,0.3}; mode='cubic' antialias=1 exclude_outside=1",
            "[2,7], -, [2]={1,0.4}; mode='linear' "
            "coordinate_transformation_mode='half_pixel_symmetric'",
            "[2,3], -, [2]={1,1}; mode='linear'", "[0,3], -, [2]={1,2}; mode='linear'",
            "[2,8,30,20], -, -, i64[4]={2,8,60,50}; mode='linear'",
            "i64[2,3]<9, -, -, i64[2]={4,2}; nearest_mode='ceil'"}},
  };
}

}  // namespace trainscope
