// Op rows: matmuls of quantized tensors. They are computed in f64, which holds sums of products of
// 8-bit integers exactly up to 2^37 terms.
#include "engine/ops/quantize/quantized_matmul.h"

#include <utility>

#include "engine/core/text.h"
#include "engine/ops/quantize/quantize_layout.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr DType kWide = DType::kF64;

void require_eight_bits(const OpArgs& args, int input) {
  const DType dtype = args.type(input).dtype;
  require(dtype == DType::kU8 || dtype == DType::kI8, ErrorCode::kBadInput,
          "input {} must be u8 or i8, is {}", input, type_text(args.type(input)));
}

// A scale or zero point of an operand: one, or one for each of `count` along an axis.
void require_along(const OpArgs& args, int input, std::int64_t count) {
  if (!args.has(input)) return;
  const Shape& shape = args.shape(input);
  const bool one = shape.elements() == 1 && shape.rank <= 1;
  require(one || shape == Shape{count}, ErrorCode::kBadInput,
          "input {} must hold one element or {}, is {}", input, count, type_text(args.type(input)));
}

// Scales or zero points, one or several along `axis`, such that they broadcast to `shape`.
ValueId along(Builder& b, ValueId v, const Shape& shape, int axis) {
  return spread_scale(b, cast_to(b, v, kWide), shape, {.axis = axis});
}

// x - zero point.
ValueId shifted(Builder& b, ValueId x, ValueId zero, int axis) {
  const Shape shape = b.shape(x);
  const ValueId wide = cast_to(b, x, kWide);
  return zero == kNoValue ? wide : b("Sub", {wide, along(b, zero, shape, axis)});
}

// round(product * scale) + zero point, in the type of the zero point, which may be an i32.
ValueId requantized(Builder& b, ValueId scaled, ValueId zero) {
  const DType to = b.type(zero).dtype;
  const IntegerRange range = integer_range(to);
  const ValueId q = b("Add", {b("Round", {scaled}), b.reshape(cast_to(b, zero, kWide), {})});
  const ValueId clipped =
      b("Clip", {q, b.scalar(range.least, kWide), b.scalar(range.greatest, kWide)});
  return cast_to(b, clipped, to);
}

// --- Matrices ------------------------------------------------------------------------------------
// The shape rule of MatMul, asked on the types of a and b.
Shape matmul_shape(const OpArgs& args, int a, int b) {
  const Shape& left = args.shape(a);
  const Shape& right = args.shape(b);
  require(left.rank >= 1 && right.rank >= 1, ErrorCode::kBadInput, "{} and {} are no matrices",
          shape_text(left), shape_text(right));
  const std::int64_t depth = left[left.rank - 1];
  const std::int64_t other = right[std::max(0, right.rank - 2)];
  require(depth == other, ErrorCode::kBadInput, "{} by {} is no product of matrices",
          shape_text(left), shape_text(right));
  const auto batch = [](const Shape& s) {
    return Shape(s.span().first(static_cast<std::size_t>(std::max(0, s.rank - 2))));
  };
  Shape shape = broadcast_shapes(batch(left), batch(right));
  if (left.rank > 1) shape.push_back(left[left.rank - 2]);
  if (right.rank > 1) shape.push_back(right[right.rank - 1]);
  return checked_shape(shape);
}

// The axes along which a has rows and b columns, as their zero points count them.
int row_axis(const Shape& a) { return std::max(0, a.rank - 2); }
int column_axis(const Shape& b) { return b.rank - 1; }

Types matmul_integer_shape(const OpArgs& args) {
  require_eight_bits(args, 0);
  require_eight_bits(args, 1);
  const Shape shape = matmul_shape(args, 0, 1);
  require_along(args, 2, args.shape(0)[row_axis(args.shape(0))]);
  require_along(args, 3, args.shape(1)[column_axis(args.shape(1))]);
  return {{.dtype = DType::kI32, .shape = shape}};
}

Values matmul_integer_decomposition(Builder& b, const Node& node) {
  const ValueId x =
      shifted(b, node.inputs[0], input_of(node, 2), row_axis(b.shape(node.inputs[0])));
  const ValueId w =
      shifted(b, node.inputs[1], input_of(node, 3), column_axis(b.shape(node.inputs[1])));
  // By way of i64 a sum beyond i32 wraps around.
  return {cast_to(b, cast_to(b, b("MatMul", {x, w}), DType::kI64), DType::kI32)};
}

// Inputs a, its scale and zero point, b, its two, the two of the result.
Types qlinear_matmul_shape(const OpArgs& args) {
  require_eight_bits(args, 0);
  require_eight_bits(args, 3);
  require_eight_bits(args, 7);
  for (int scale : {1, 4, 6}) require_float(args, scale);
  const Shape shape = matmul_shape(args, 0, 3);
  for (int input : {1, 2}) require_along(args, input, args.shape(0)[row_axis(args.shape(0))]);
  for (int input : {4, 5}) require_along(args, input, args.shape(3)[column_axis(args.shape(3))]);
  for (int input : {6, 7}) require_along(args, input, 1);
  return {{.dtype = args.type(7).dtype, .shape = shape}};
}

Values qlinear_matmul_decomposition(Builder& b, const Node& node) {
  const Shape left = b.shape(node.inputs[0]);
  const Shape right = b.shape(node.inputs[3]);
  const auto operand = [&](std::size_t first, const Shape& shape, int axis) {
    const ValueId whole = shifted(b, node.inputs[first], node.inputs[first + 2], axis);
    return b("Mul", {whole, along(b, node.inputs[first + 1], shape, axis)});
  };
  const ValueId product =
      b("MatMul", {operand(0, left, row_axis(left)), operand(3, right, column_axis(right))});
  const ValueId scale = b.reshape(cast_to(b, node.inputs[6], kWide), {});
  return {requantized(b, b("Div", {product, scale}), node.inputs[7])};
}

// --- Convolutions --------------------------------------------------------------------------------
// The shape rule of Conv on inputs x and w.
Shape conv_shape(const OpArgs& args, int x, int w) {
  const Shape& input = args.shape(x);
  const Shape& weight = args.shape(w);
  require(weight.rank == input.rank && input.rank >= 3, ErrorCode::kBadInput,
          "x {} and weight {} must have one number of dimensions, 3 at least", shape_text(input),
          shape_text(weight));
  const std::int64_t groups = args.attributes.integer("group", 1);
  const bool fit = groups >= 1 && input[1] % groups == 0 && input[1] / groups == weight[1] &&
                   weight[0] % groups == 0;
  require(fit, ErrorCode::kBadInput, "x {} and weight {} do not fit {} groups", shape_text(input),
          shape_text(weight), groups);
  const Ints kernel = args.attributes.integers(
      "kernel_shape", Ints(weight.span().begin() + 2, weight.span().end()));
  require(Shape(kernel) == Shape(weight.span().subspan(2)), ErrorCode::kBadInput,
          "attribute kernel_shape does not fit the weight {}", shape_text(weight));
  return window_output_shape(window_params(args, input, kernel), input, weight[0]);
}

Types conv_integer_shape(const OpArgs& args) {
  require_eight_bits(args, 0);
  require_eight_bits(args, 1);
  const Shape shape = conv_shape(args, 0, 1);
  require_along(args, 2, 1);
  require_along(args, 3, args.shape(1)[0]);
  return {{.dtype = DType::kI32, .shape = shape}};
}

Values conv_integer_decomposition(Builder& b, const Node& node) {
  const ValueId x = shifted(b, node.inputs[0], input_of(node, 2), 0);
  const ValueId w = shifted(b, node.inputs[1], input_of(node, 3), 0);
  const ValueId y = b("Conv", {x, w}, node.attributes);
  return {cast_to(b, cast_to(b, y, DType::kI64), DType::kI32)};
}

// Inputs x, its scale and zero point, w, its two, the two of the result, the bias (i32).
Types qlinear_conv_shape(const OpArgs& args) {
  for (int input : {0, 3, 7}) require_eight_bits(args, input);
  for (int scale : {1, 4, 6}) require_float(args, scale);
  const Shape shape = conv_shape(args, 0, 3);
  for (int input : {1, 2, 6, 7}) require_along(args, input, 1);
  for (int input : {4, 5}) require_along(args, input, args.shape(3)[0]);
  if (args.has(8)) {
    require_dtype(args, 8, DType::kI32);
    require_shape(args, 8, Shape{args.shape(3)[0]});
  }
  return {{.dtype = args.type(7).dtype, .shape = shape}};
}

Values qlinear_conv_decomposition(Builder& b, const Node& node) {
  const ValueId x = shifted(b, node.inputs[0], node.inputs[2], 0);
  const ValueId w = shifted(b, node.inputs[3], node.inputs[5], 0);
  std::vector<ValueId> operands{x, w};
  if (input_of(node, 8) != kNoValue) operands.push_back(cast_to(b, node.inputs[8], kWide));
  const ValueId sums = b("Conv", operands, node.attributes);
  const Shape shape = b.shape(sums);
  const auto factor = [&](std::size_t input) { return along(b, node.inputs[input], shape, 1); };
  const ValueId scale = b("Div", {b("Mul", {factor(1), factor(4)}), factor(6)});
  return {requantized(b, b("Mul", {sums, scale}), node.inputs[7])};
}

std::vector<AttributeSpec> conv_attributes() {
  return {{"kernel_shape", "the weight's spatial sizes"},
          {"strides", "1 by default"},
          {"dilations", "1 by default"},
          {"pads", "zero points before and after each axis; 0 by default"},
          {"auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
          {"group", "groups of channels; 1 by default"}};
}

}  // namespace

std::vector<OpDef> quantized_matmul_rows() {
  return {
      {.name = "MatMulInteger",
       .doc = "the product of matrices a - its zero point and b - its, as i32",
       .min_inputs = 2,
       .max_inputs = 4,
       .shape = matmul_integer_shape,
       .decompose = matmul_integer_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"u8[2,3]<9, i8[3,4]<9", "u8[2,3]<9, u8[3,4]<9, u8[]={3}, u8[4]={1,2,3,4}",
                    "u8[2,2,3]<9, u8[3,1]<9, u8[]={3}", "i8[3]<9, i8[3,2]<9", "u8[0,3], u8[3,4]"}},
      {.name = "QLinearMatMul",
       .doc = "MatMulInteger of a and b, quantized as y: inputs a, b with scales and zero points, "
              "then those of y",
       .min_inputs = 8,
       .max_inputs = 8,
       .shape = qlinear_matmul_shape,
       .decompose = qlinear_matmul_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"u8[2,3]<9, f32[]={0.5}, u8[]={1}, u8[3,4]<9, f32[]={0.25}, u8[]={2}, "
                    "f32[]={0.5}, u8[]={9}",
                    "i8[2,3]<9, f32[]={0.5}, i8[]={1}, i8[3,2]<9, f32[2]={0.25,1}, i8[2]={2,0}, "
                    "f32[1]={0.5}, i8[1]={9}",
                    "u8[0,3], f32[]={0.5}, u8[]={1}, u8[3,4]<9, f32[]={0.25}, u8[]={2}, "
                    "f32[]={0.5}, u8[]={9}"}},
      {.name = "ConvInteger",
       .doc = "the convolution of x - its zero point with w - its (one, or one for each channel of "
              "the result), as i32; what is padded is the zero point",
       .min_inputs = 2,
       .max_inputs = 4,
       .attributes = conv_attributes(),
       .shape = conv_integer_shape,
       .decompose = conv_integer_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"u8[1,1,3,3]<9, u8[1,1,2,2]<9, u8[]={1}",
                    "i8[2,2,4]<9, i8[3,2,3]<9, i8[]={1}, i8[3]={0,1,2}; pads={1,1}",
                    "u8[0,1,3,3], u8[1,1,2,2]"}},
      {.name = "QLinearConv",
       .doc =
           "ConvInteger of x and w with a bias, quantized as y: inputs x, w with scales and zero "
           "points, then those of y, then the bias (i32, in steps of the scales of x and w)",
       .min_inputs = 8,
       .max_inputs = 9,
       .attributes = conv_attributes(),
       .shape = qlinear_conv_shape,
       .decompose = qlinear_conv_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"u8[1,1,3,3]<9, f32[]={0.5}, u8[]={1}, u8[2,1,2,2]<9, f32[2]={0.25,0.5}, "
                    "u8[2]={2,3}, f32[]={0.5}, u8[]={9}, i32[2]={1,-2}",
                    "u8[1,1,3,3]<9, f32[]={0.5}, u8[]={1}, u8[1,1,1,1]<9, f32[]={0.25}, u8[]={2}, "
                    "f32[]={0.5}, u8[]={9}",
                    "u8[0,1,3,3], f32[]={0.5}, u8[]={1}, u8[1,1,1,1]<9, f32[]={0.25}, u8[]={2}, "
                    "f32[]={0.5}, u8[]={9}"}},
  };
}

}  // namespace trainscope
