// Op rows: regions of images as bins of equal size. RoiAlign and MaxRoiPool tell regions in an
// image's coordinates; what has kernels takes elements.
#include <string>
#include <utility>

#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Shapes --------------------------------------------------------------------------------------

// x [N, C, H, W] in input `image`; in the one after it a row of numbers for each region.
struct Regions {
  int image = 0;
  int numbers = 4;
  bool sampled = true;  // one more input: examples [R]
  bool counted = true;  // and one more: the samples of a bin
};

// The result [R, C, height, width].
Shape binned_shape(const OpArgs& args, const Regions& regions, const Ints& bins) {
  const int image = regions.image;
  require_float(args, image);
  require_rank(args, image, 4);
  const Shape& x = args.shape(image);
  require(x[2] > 0 && x[3] > 0, ErrorCode::kBadInput, "the images {} are empty", shape_text(x));
  require_dtype(args, image + 1, args.type(image).dtype);
  require_rank(args, image + 1, 2);
  const std::int64_t count = args.shape(image + 1)[0];
  require_shape(args, image + 1, {count, regions.numbers});
  if (regions.sampled) {
    require_dtype(args, image + 2, DType::kI64);
    require_shape(args, image + 2, {count});
  }
  if (regions.counted) {
    require_dtype(args, image + 3, DType::kI64);
    require_rank(args, image + 3, 0);
  }
  require(bins.size() == 2 && bins[0] >= 1 && bins[1] >= 1, ErrorCode::kBadInput,
          "the bins must be a height and a width, are {}", shape_text(bins));
  return checked_shape({count, x[1], bins[0], bins[1]});
}

constexpr Regions kSampled{.image = 0};
constexpr Regions kAligned{.image = 0, .counted = false};
constexpr Regions kPooled{.image = 0, .numbers = 5, .sampled = false, .counted = false};

constexpr Regions after_dy(Regions regions) {
  ++regions.image;
  return regions;
}

Ints given_bins(const OpArgs& args) { return args.attributes.integers("bins"); }

template <const Regions& kRegions>
Types binned_types(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = binned_shape(args, kRegions, given_bins(args))}};
}

// dy, x, ... -> dx
template <const Regions& kRegions>
Types image_types(const OpArgs& args) {
  require_dtype(args, 0, args.type(1).dtype);
  require_shape(args, 0, binned_shape(args, after_dy(kRegions), given_bins(args)));
  return {args.type(1)};
}

// dy, bins, examples, samples -> dx
Types mean_grad_types(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 1, args.type(0).dtype);
  require_rank(args, 0, 4);
  const Shape& dy = args.shape(0);
  require_shape(args, 1, {dy[0], 4});
  require_dtype(args, 2, DType::kI64);
  require_shape(args, 2, {dy[0]});
  require_dtype(args, 3, DType::kI64);
  require_rank(args, 3, 0);
  const Shape x = checked_shape(args.attributes.integers("shape"));
  require(x.rank == 4 && x[1] == dy[1], ErrorCode::kBadInput,
          "attribute shape {} has other channels than {}", shape_text(x), shape_text(dy));
  return {{.dtype = args.type(0).dtype, .shape = x}};
}

// Elements of 2 x 2 samples for each element of a result of this shape.
Cost bins_cost(const OpArgs& args, const Shape& y) {
  return with_flops(args, saturating_multiply(32, y.elements()));
}
Cost forward_cost(const OpArgs& args) { return bins_cost(args, args.outputs[0].shape); }
Cost backward_cost(const OpArgs& args) { return bins_cost(args, args.shape(0)); }

// --- Gradients -----------------------------------------------------------------------------------

Values mean_gradient(const GradArgs& g) {
  Values gradients(4, kNoValue);
  if (!g.wants(0)) return gradients;
  gradients[0] = g.b("RegionMeanGrad", {g.dy[0], g.x[1], g.x[2], g.x[3]},
                     {{"shape", ints_of(g.type(g.x[0]).shape)}});
  return gradients;
}

Values largest_gradient(const GradArgs& g, std::string_view op) {
  Values gradients(g.x.size(), kNoValue);
  if (!g.wants(0)) return gradients;
  Values inputs{g.dy[0]};
  inputs.insert(inputs.end(), g.x.begin(), g.x.end());
  gradients[0] = g.b(op, inputs, g.node.attributes);
  return gradients;
}

// --- RoiAlign and MaxRoiPool ---------------------------------------------------------------------

bool takes_maximum(const OpArgs& args) {
  const std::string mode = args.attributes.text("mode", "avg");
  require(mode == "avg" || mode == "max", ErrorCode::kBadInput,
          "attribute mode is '{}'; avg and max exist", printable(mode));
  return mode == "max";
}

bool is_half_pixel(const OpArgs& args) {
  const std::string mode = args.attributes.text("coordinate_transformation_mode", "half_pixel");
  require(mode == "half_pixel" || mode == "output_half_pixel", ErrorCode::kBadInput,
          "attribute coordinate_transformation_mode is '{}'; half_pixel and output_half_pixel "
          "exist",
          printable(mode));
  return mode == "half_pixel";
}

Ints aligned_bins(const OpArgs& args) {
  return {args.attributes.integer("output_height", 1), args.attributes.integer("output_width", 1)};
}

std::int64_t samples_of_bin(const OpArgs& args) {
  constexpr std::int64_t kMost = 1024;
  const std::int64_t samples = args.attributes.integer("sampling_ratio", 0);
  require(samples >= 0 && samples <= kMost, ErrorCode::kBadInput,
          "attribute sampling_ratio is {}, expected a number in [0, {}]", samples, kMost);
  return samples;
}

Types roi_align_shape(const OpArgs& args) {
  takes_maximum(args);
  is_half_pixel(args);
  samples_of_bin(args);
  return {{.dtype = args.type(0).dtype, .shape = binned_shape(args, kAligned, aligned_bins(args))}};
}

Types max_roi_pool_shape(const OpArgs& args) {
  const Ints bins = args.attributes.integers("pooled_shape");
  return {{.dtype = args.type(0).dtype, .shape = binned_shape(args, kPooled, bins)}};
}

// Regions x1, y1, x2, y2 [R, 4] -> bins top, left, height, width [R, 4]. No gradient flows to them.
ValueId bins_of(Builder& b, const OpArgs& args, ValueId regions) {
  const DType dtype = b.type(regions).dtype;
  const auto number = [&](double value) { return b.scalar(value, dtype); };
  const double scale = args.attributes.number("spatial_scale", 1.0);
  const bool half_pixel = is_half_pixel(args);
  const Ints bins = aligned_bins(args);
  ValueId corners = b("Mul", {b("StopGradient", {regions}), number(scale)});
  if (half_pixel) corners = b("Sub", {corners, number(0.5)});
  const Values c = b.multi("Split", {corners}, 4, {{"axis", std::int64_t{1}}});
  const auto size_of_bin = [&](std::size_t first, std::int64_t count) {
    ValueId size = b("Sub", {c[first + 2], c[first]});
    if (!half_pixel) size = b("Maximum", {size, number(1.0)});  // no region is smaller
    return b("Div", {size, number(static_cast<double>(count))});
  };
  const ValueId height = size_of_bin(1, bins[0]);
  const ValueId width = size_of_bin(0, bins[1]);
  return b("Concat", {c[1], c[0], height, width}, {{"axis", std::int64_t{1}}});
}

Values roi_align_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const bool maximum = takes_maximum(*args);
  const Ints shape = aligned_bins(*args);
  const ValueId samples = b.constant(Tensor::scalar(samples_of_bin(*args)), "samples");
  const ValueId bins = bins_of(b, *args, node.inputs[1]);
  return {b(maximum ? "RegionMax" : "RegionMean", {node.inputs[0], bins, node.inputs[2], samples},
            {{"bins", shape}})};
}

// The example's number stays as it is.
Values max_roi_pool_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const double scale = args->attributes.number("spatial_scale", 1.0);
  const Floats factors{1.0, scale, scale, scale, scale};
  const ValueId scales =
      b.constant(convert(Tensor::of<double>(Shape{5}, factors), args->type(1).dtype), "scales");
  const ValueId regions = b("Mul", {b("StopGradient", {node.inputs[1]}), scales});
  return {b("RegionPool", {node.inputs[0], regions},
            {{"bins", node.attributes.integers("pooled_shape")}})};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kBins{"bins", "in a column and in a row of a region; required"};
constexpr AttributeSpec kScale{"spatial_scale", "from the regions' coordinates to elements, 1"};

std::vector<OpDef> sampled_ops() {
  return {
      {.name = "RegionMean",
       .doc =
           "x [N,C,H,W], bins [R,4] as top, left, height, width of the first one in elements, "
           "examples [R], samples of a bin along each axis (0: one for each element) -> [R,C,bins] "
           "the mean of the samples, which lie between the elements. NaN for an example that does "
           "not exist",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = {kBins},
       .shape = binned_types<kSampled>,
       .gradient = mean_gradient,
       .cost = forward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples =
           {"[2,3,6,7], [2,4]={0.5,0,1.5,2,-2,1,4,0.75}, i64[2]={1,0}, i64[]={2}; bins={2,3}",
            "[1,2,6,7], [1,4]={1,0,1.5,3}, i64[1]={0}, i64[]={0}; bins={2,2}",
            "[1,2,3,3], [1,4]={nan,1,2,2}, i64[1]={0}, i64[]={0}; bins={1,1}",
            "[1,2,3,3], [1,4]={0,0,2,2}, i64[1]={5}, i64[]={1}; bins={1,1}",
            "[1,2,3,3], [0,4], i64[0]<1, i64[]={1}; bins={2,2}",
            "[2,8,20,30], [2,4]={0,1,3,4,4,9,0.5,3}, i64[2]={1,1}, i64[]={0}; bins={7,7}"}},
      {.name = "RegionMeanGrad",
       .doc = "dy, bins, examples, samples -> the gradient of RegionMean by x, region by region",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = {{"shape", "of x"}},
       .shape = mean_grad_types,
       .cost = backward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3,2,3], [2,4]={0.5,0,1.5,2,-2,1,4,0.75}, i64[2]={1,0}, i64[]={2}; "
                    "shape={2,3,6,7}",
                    "[1,2,1,1], [1,4]={0,0,2,2}, i64[1]={-1}, i64[]={0}; shape={1,2,3,3}",
                    "[0,2,2,2], [0,4], i64[0]<1, i64[]={1}; shape={1,2,3,3}"}},
      {.name = "RegionMax",
       .doc =
           "as RegionMean, but the largest of the weighted elements that the samples are sums of",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = {kBins},
       .shape = binned_types<kSampled>,
       .gradient = [](const GradArgs& g) { return largest_gradient(g, "RegionMaxGrad"); },
       .cost = forward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples = {"[2,3,6,7]~, [2,4]={0.5,0,1.5,2,-2,1,4,0.75}, i64[2]={1,0}, i64[]={2}; "
                    "bins={2,3}",
                    "[1,2,3,3], [1,4]={0,0,2,2}, i64[1]={5}, i64[]={1}; bins={1,1}",
                    "[1,2,3,3], [0,4], i64[0]<1, i64[]={1}; bins={2,2}"}},
      {.name = "RegionMaxGrad",
       .doc = "dy, x, bins, examples, samples -> the gradient of RegionMax by x",
       .domain = kTrainscopeDomain,
       .min_inputs = 5,
       .max_inputs = 5,
       .attributes = {kBins},
       .shape = image_types<kSampled>,
       .cost = backward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3,2,3], [2,3,6,7]~, [2,4]={0.5,0,1.5,2,-2,1,4,0.75}, i64[2]={1,0}, "
                    "i64[]={2}; bins={2,3}",
                    "[0,2,2,2], [1,2,3,3], [0,4], i64[0]<1, i64[]={1}; bins={2,2}"}},
  };
}

std::vector<OpDef> pooled_ops() {
  return {
      {.name = "RegionPool",
       .doc =
           "x [N,C,H,W], regions [R,5] as example, x1, y1, x2, y2 in elements -> [R,C,bins] the "
           "largest element of each bin, 0 for one without elements. NaN for an example that does "
           "not exist",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kBins},
       .shape = binned_types<kPooled>,
       .gradient = [](const GradArgs& g) { return largest_gradient(g, "RegionPoolGrad"); },
       .cost = forward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValues,
       .examples = {"[2,3,6,7]~, [2,5]={1,0,1,5,4,0,2,0,3,5}; bins={2,3}",
                    "[1,2,3,3]~, [1,5]={3,0,0,2,2}; bins={1,1}",
                    "[1,2,3,3], [1,5]={0,nan,0,2,2}; bins={1,1}", "[1,2,3,3], [0,5]; bins={2,2}",
                    "[2,8,20,30]~, [2,5]={0,1,2,25,19,1,4,4,9,18}; bins={7,7}"}},
      {.name = "RegionPoolGrad",
       .doc = "dy, x, regions -> the gradient of RegionPool by x: all of it to the first maximum",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kBins},
       .shape = image_types<kPooled>,
       .cost = backward_cost,
       .op_class = OpClass::kReduction,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3,2,3], [2,3,6,7]~, [2,5]={1,0,1,5,4,0,2,0,3,5}; bins={2,3}",
                    "[0,2,2,2], [1,2,3,3], [0,5]; bins={2,2}"}},
  };
}

std::vector<OpDef> roi_ops() {
  return {
      {.name = "RoiAlign",
       .doc = "x [N,C,H,W], regions [R,4] as x1, y1, x2, y2, examples [R] -> [R,C,height,width]: "
              "bins of each region, of samples between the elements. No gradient flows to the "
              "regions",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{"mode",
                       "of a bin: avg (default) of its samples, or max of the weighted "
                       "elements that these are sums of"},
                      {"output_height", "bins, 1 by default"},
                      {"output_width", "bins, 1 by default"},
                      {"sampling_ratio",
                       "samples of a bin along each axis; 0 (default): one for each element"},
                      kScale,
                      {"coordinate_transformation_mode",
                       "half_pixel (default), or output_half_pixel: without a shift by half an "
                       "element, and no region is smaller than one"}},
       .shape = roi_align_shape,
       .decompose = roi_align_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[2,3,6,7], [2,4]={0,1,5,4,1.5,0.25,3,5}, i64[2]={1,0}; output_height=2 "
                    "output_width=3 sampling_ratio=2",
                    "[2,2,6,7], [1,4]={2,1,9,8}, i64[1]={1}; output_height=3 output_width=2 "
                    "spatial_scale=0.5 coordinate_transformation_mode='output_half_pixel'",
                    "[1,2,6,7]~, [1,4]={0,1,5,4}, i64[1]={0}; mode='max' output_height=2 "
                    "output_width=2 sampling_ratio=2",
                    "[1,2,3,3], [0,4], i64[0]<1"}},
      {.name = "MaxRoiPool",
       .doc = "x [N,C,H,W], regions [R,5] as example, x1, y1, x2, y2 -> [R,C,height,width]: the "
              "largest element of each bin, 0 for one without elements. No gradient flows to the "
              "regions",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"pooled_shape", "bins: height, width; required"}, kScale},
       .shape = max_roi_pool_shape,
       .decompose = max_roi_pool_decomposition,
       .op_class = OpClass::kReduction,
       .traits = kComposite,
       .examples = {"[2,3,6,7]~, [2,5]={1,0,1,5,4,0,2,0,3,5}; pooled_shape={2,3}",
                    "[1,2,6,7]~, [1,5]={0,2,2,40,9}; pooled_shape={2,2} spatial_scale=0.5",
                    "[1,2,3,3], [0,5]; pooled_shape={2,2}"}},
  };
}

}  // namespace

std::vector<OpDef> region_pool_ops() {
  std::vector<OpDef> rows = sampled_ops();
  for (auto* more : {&pooled_ops, &roi_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
