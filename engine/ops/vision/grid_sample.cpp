// Op rows: GridSample, which reads images between their elements, and AffineGrid, which makes the
// grids that it reads at.
#include <string>
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"
#include "engine/ops/vision/taps.h"

namespace trainscope {
namespace {

// --- Attributes ----------------------------------------------------------------------------------

SampleMode sample_mode(const OpArgs& args) {
  const std::string mode = args.attributes.text("mode", "linear");
  if (mode == "linear" || mode == "bilinear") return SampleMode::kLinear;
  if (mode == "cubic" || mode == "bicubic") return SampleMode::kCubic;
  require(mode == "nearest", ErrorCode::kBadInput,
          "attribute mode is '{}'; linear, nearest and cubic exist", printable(mode));
  return SampleMode::kNearest;
}

SamplePadding sample_padding(const OpArgs& args) {
  const std::string padding = args.attributes.text("padding_mode", "zeros");
  if (padding == "zeros") return SamplePadding::kZeros;
  if (padding == "border") return SamplePadding::kBorder;
  require(padding == "reflection", ErrorCode::kBadInput,
          "attribute padding_mode is '{}'; zeros, border and reflection exist", printable(padding));
  return SamplePadding::kReflection;
}

bool aligns_corners(const OpArgs& args) { return args.attributes.integer("align_corners", 0) != 0; }

SampleRule sample_rule(const OpArgs& args) {
  return {.mode = sample_mode(args),
          .padding = sample_padding(args),
          .align_corners = aligns_corners(args)};
}

// --- GridSample ----------------------------------------------------------------------------------

// x [N, C, in...], with one to three axes `in` that are not empty.
void require_image(const Shape& x) {
  const bool fits = x.rank >= 3 && x.rank <= 2 + kMaxSpatialRank;
  require(fits, ErrorCode::kBadInput,
          "what is sampled must have a batch, channels and 1 to {} spatial axes, is {}",
          kMaxSpatialRank, shape_text(x));
  for (int axis = 2; axis < x.rank; ++axis) {
    require(x[axis] > 0, ErrorCode::kBadInput, "axis {} of {}, which is sampled, is empty", axis,
            shape_text(x));
  }
}

Types grid_sample_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  const Shape& x = args.shape(0);
  const Shape& grid = args.shape(1);
  require_image(x);
  require(grid.rank == x.rank && grid[0] == x[0] && grid[grid.rank - 1] == x.rank - 2,
          ErrorCode::kBadInput, "the grid for {} must be [{}, ..., {}] with as many axes, is {}",
          shape_text(x), x[0], x.rank - 2, shape_text(grid));
  sample_rule(args);  // checks the attributes
  Shape y = x;
  for (int axis = 2; axis < x.rank; ++axis) y[axis] = grid[axis - 1];
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(y)}};
}

// From [-1, 1] to elements: (g + 1) / 2 * (size - 1), or ((g + 1) * size - 1) / 2.
ValueId grid_places(Builder& b, ValueId grid, std::int64_t size, bool align_corners) {
  const DType dtype = b.type(grid).dtype;
  const auto number = [&](double value) { return b.scalar(value, dtype); };
  const auto length = static_cast<double>(size);
  const ValueId from_0 = b("Add", {grid, number(1.0)});
  if (align_corners) return b("Mul", {b("Mul", {from_0, number(0.5)}), number(length - 1.0)});
  return b("Mul", {b("Sub", {b("Mul", {from_0, number(length)}), number(1.0)}), number(0.5)});
}

Values grid_sample_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape x = args->shape(0);
  const TensorType y = grid_sample_shape(*args)[0];
  const int rank = x.rank - 2;
  const std::int64_t points = Shape(y.shape.span().subspan(2)).elements();
  const ValueId grid = b.reshape(node.inputs[1], {x[0], points, rank});
  const Values columns = b.multi("Split", {grid}, rank, {{"axis", std::int64_t{2}}});
  Values places;
  for (int axis = 0; axis < rank; ++axis) {
    const ValueId column = columns[static_cast<std::size_t>(rank - 1 - axis)];
    places.push_back(grid_places(b, column, x[axis + 2], aligns_corners(*args)));
  }
  return {b.reshape(sample_at(b, node.inputs[0], places, sample_rule(*args)), y.shape)};
}

// --- AffineGrid ----------------------------------------------------------------------------------

// theta [N, rank, rank + 1], size = [N, C, out...] -> grid [N, out..., rank].
Types affine_grid_shape(const OpArgs& args) {
  require_float(args, 0);
  const Ints size = args.constant_ints(1);
  require(size.size() == 4 || size.size() == 5, ErrorCode::kBadInput,
          "input 1 holds {} sizes; 4 (images) or 5 (volumes) are expected", size.size());
  checked_shape(size);
  const auto rank = std::ssize(size) - 2;
  require_shape(args, 0, {size[0], rank, rank + 1});
  Ints dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(rank);
  const TensorType grid{.dtype = args.type(0).dtype, .shape = checked_shape(dims)};
  constexpr std::int64_t kMost = std::int64_t{1} << 24;  // points are a constant
  require(grid.elements() == 0 || grid.elements() / (size[0] * rank) <= kMost, ErrorCode::kBadInput,
          "sizes {} have more than {} points", shape_text(size), kMost);
  return {grid};
}

// Place i of an axis of `size` elements, from -1 to 1.
double affine_place(std::int64_t i, std::int64_t size, bool align_corners) {
  if (!align_corners) return static_cast<double>(2 * i + 1) / static_cast<double>(size) - 1.0;
  if (size == 1) return 0.0;
  return 2.0 * static_cast<double>(i) / static_cast<double>(size - 1) - 1.0;
}

// Each point of the output as (x, y, ..., 1): [points, rank + 1].
Tensor affine_points(const Shape& grid, bool align_corners) {
  const int rank = grid[grid.rank - 1] == 2 ? 2 : 3;
  const std::int64_t points =
      Shape(grid.span().subspan(1, static_cast<std::size_t>(rank))).elements();
  Floats coordinates;
  for (std::int64_t p = 0; p < points; ++p) {
    std::int64_t rest = p;
    for (int axis = rank; axis >= 1; --axis) {
      coordinates.push_back(affine_place(rest % grid[axis], grid[axis], align_corners));
      rest /= grid[axis];
    }
    coordinates.push_back(1.0);
  }
  return Tensor::of<double>({points, rank + 1}, coordinates);
}

Values affine_grid_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const TensorType grid = affine_grid_shape(*args)[0];
  if (grid.elements() == 0) return {zeros(b, grid)};
  const Tensor points = affine_points(grid.shape, aligns_corners(*args));
  const ValueId from = b.constant(convert(points, grid.dtype), "points");
  const ValueId theta = transposed(b, node.inputs[0], {0, 2, 1});
  return {b.reshape(b("MatMul", {from, theta}), grid.shape)};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kMode{"mode",
                              "linear (default; also bilinear), nearest or cubic (bicubic)"};
constexpr AttributeSpec kPadding{"padding_mode",
                                 "beyond the ends: zeros (default), border or reflection"};

// ONNX's of opset 16 is for images and calls its modes bilinear and bicubic; the one since opset 20
// is in our domain.
OpDef grid_sample_row(std::string_view domain) {
  return {.name = "GridSample",
          .doc =
              "x [N,C,in...], grid [N,out...,rank] -> y [N,C,out...]: x between its elements, at "
              "places that the grid tells from -1 to 1, the last axis first. Of cubic sums each "
              "element is padded, else the place",
          .domain = domain,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {kMode,
                         kPadding,
                         {"align_corners",
                          "1: -1 and 1 are the outermost elements, else (default) their edges"}},
          .shape = grid_sample_shape,
          .decompose = grid_sample_decomposition,
          .op_class = OpClass::kMovement,
          .traits = kComposite,
          .examples = {"[1,2,4,5], [1,2,3,2]", "[1,2,4,5], [1,2,3,2]; align_corners=1",
                       "[1,2,4,5], [1,2,3,2]; mode='bicubic' padding_mode='border'",
                       "[1,2,4,5], [1,2,3,2]; mode='nearest' padding_mode='reflection'",
                       "[1,2,4,5], [1,2,3,2]; padding_mode='reflection' align_corners=1",
                       "[1,2,3,4,2], [1,2,2,3,3]", "[0,2,4,4], [0,2,3,2]", "[1,2,3,3], [1,0,3,2]",
                       "[2,8,20,30], [2,3,5,2]"}};
}

}  // namespace

std::vector<OpDef> grid_sample_ops() {
  return {
      grid_sample_row(kOnnxDomain),
      grid_sample_row(kTrainscopeDomain),
      {.name = "AffineGrid",
       .doc = "theta [N,rank,rank+1], size [N,C,out...] -> the grid [N,out...,rank] of GridSample "
              "that theta makes of each point of the output",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"align_corners",
                       "1: -1 and 1 are the outermost points, else (default) their edges"}},
       .shape = affine_grid_shape,
       .decompose = affine_grid_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,2,3], i64[4]={2,3,4,5}", "[1,3,4], i64[5]={1,2,2,3,4}; align_corners=1",
                    "[1,2,3], i64[4]={1,1,1,3}; align_corners=1", "[0,2,3], i64[4]={0,3,4,4}",
                    "[2,2,3], i64[4]={2,3,60,80}"}},
  };
}

}  // namespace trainscope
