// Op rows: conversion to and from types that are only stored, quantized tensors and matmuls of
// them. All but FakeQuantize are written with simpler ops.
#include <string>
#include <utility>

#include "engine/core/text.h"
#include "engine/ops/quantize/fake_quantize.h"
#include "engine/ops/quantize/quantize_layout.h"
#include "engine/ops/quantize/quantized_matmul.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- StorageCast ---------------------------------------------------------------------------------
PowerRounding power_rounding(const OpArgs& args) {
  const std::string mode = args.attributes.text("round_mode", "up");
  require(mode == "up" || mode == "down" || mode == "nearest", ErrorCode::kBadInput,
          "attribute round_mode is '{}'; up, down and nearest exist", printable(mode));
  if (mode == "down") return PowerRounding::kDown;
  return mode == "up" ? PowerRounding::kUp : PowerRounding::kNearest;
}

Params storage_cast_params(const OpArgs& args) {
  const bool saturate = args.attributes.integer("saturate", 1) != 0;
  return CastParams{.conversion = {.overflow = saturate ? Overflow::kSaturate : Overflow::kSpecial,
                                   .rounding = power_rounding(args)}};
}

Types storage_cast_shape(const OpArgs& args) {
  const DType to = dtype_of_onnx(args.attributes.integer("to", 0));
  require(is_storage(to) || is_storage(args.type(0).dtype), ErrorCode::kBadInput,
          "neither {} nor {} is a type that is only stored: Cast converts them",
          type_text(args.type(0)), name_of(to));
  power_rounding(args);
  return {{.dtype = to, .shape = args.shape(0)}};
}

// To any type, by the op that has it.
ValueId converted(Builder& b, ValueId v, DType to, std::int64_t saturate = 1) {
  const DType from = b.type(v).dtype;
  if (!is_storage(from) && !is_storage(to)) return cast_to(b, v, to);
  if (from == to) return v;
  return b("StorageCast", {v}, {{"to", onnx_number(to)}, {"saturate", saturate}});
}

// --- QuantizeLinear: x, scale, zero point --------------------------------------------------------
DType number_attribute(const OpArgs& args, std::string_view name, DType absent) {
  const std::int64_t number = args.attributes.integer(name, 0);
  return number == 0 ? absent : dtype_of_onnx(number);
}

DType quantized_type(const OpArgs& args) {
  if (!args.has(2)) return number_attribute(args, "output_dtype", DType::kU8);
  const DType dtype = args.type(2).dtype;
  require(number_attribute(args, "output_dtype", dtype) == dtype, ErrorCode::kBadInput,
          "attribute output_dtype is {}, but the zero point is {}",
          args.attributes.integer("output_dtype", 0), type_text(args.type(2)));
  return dtype;
}

// A zero point for each scale, or one.
void require_zero_point(const OpArgs& args) {
  const bool one = args.has(2) && args.type(2).elements() == 1 && args.rank(2) <= 1;
  if (args.has(2) && !(one && args.type(1).elements() == 1)) require_shape(args, 2, args.shape(1));
}

Types quantize_shape(const OpArgs& args) {
  require(is_number(args.type(0).dtype), ErrorCode::kBadInput,
          "input 0 must be a tensor of numbers, is {}", type_text(args.type(0)));
  require_float(args, 1);
  quantize_layout(args, 1);
  require_zero_point(args);
  const DType dtype = quantized_type(args);
  require(
      is_quantized_integer(dtype) || is_storage(dtype), ErrorCode::kBadInput,
      "numbers cannot be quantized to {}; integers of 16 bits and less and floats of 8 and less "
      "can be asked for",
      name_of(dtype));
  return {{.dtype = dtype, .shape = args.shape(0)}};
}

// What quotients are computed in: the attribute precision, else the float type of x.
DType quotient_type(const OpArgs& args) {
  const DType x = args.type(0).dtype;
  return computed(number_attribute(args, "precision", is_float(x) ? x : args.type(1).dtype));
}

Values quantize_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const DType to = args->outputs[0].dtype;
  const DType wide = quotient_type(*args);
  const Shape shape = args->shape(0);
  const QuantizeParams layout = quantize_layout(*args, 1);
  const ValueId scale = spread_scale(b, cast_to(b, node.inputs[1], wide), shape, layout);
  ValueId q = b("Div", {cast_to(b, node.inputs[0], wide), scale});
  const bool integers = is_quantized_integer(to);
  if (integers) q = b("Round", {q});
  if (args->has(2)) {
    q = b("Add", {q, spread_scale(b, converted(b, node.inputs[2], wide), shape, layout)});
  }
  if (!integers) return {converted(b, q, to, node.attributes.integer("saturate", 1))};
  const IntegerRange range = integer_range(to);
  q = b("Clip", {q, b.scalar(range.least, wide), b.scalar(range.greatest, wide)});
  return {converted(b, q, to)};
}

// --- DequantizeLinear: x, scale, zero point ------------------------------------------------------
Types dequantize_shape(const OpArgs& args) {
  const DType x = args.type(0).dtype;
  require(is_integer_type(x) || is_storage(x), ErrorCode::kBadInput,
          "input 0 must be a quantized tensor, is {}", type_text(args.type(0)));
  require_float(args, 1);
  quantize_layout(args, 1);
  require_zero_point(args);
  if (args.has(2)) {
    require(args.type(2).dtype == x, ErrorCode::kBadInput,
            "the zero point must have the type of input 0, {}, is {}", name_of(x),
            type_text(args.type(2)));
  }
  const DType to = number_attribute(args, "output_dtype", args.type(1).dtype);
  require(is_float(to), ErrorCode::kBadInput, "attribute output_dtype names {}: no float",
          name_of(to));
  return {{.dtype = to, .shape = args.shape(0)}};
}

Values dequantize_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const DType to = args->outputs[0].dtype;
  const DType wide = computed(args->type(1).dtype);
  const Shape shape = args->shape(0);
  const QuantizeParams layout = quantize_layout(*args, 1);
  ValueId x = converted(b, node.inputs[0], wide);
  if (args->has(2)) {
    x = b("Sub", {x, spread_scale(b, converted(b, node.inputs[2], wide), shape, layout)});
  }
  const ValueId scale = spread_scale(b, cast_to(b, node.inputs[1], wide), shape, layout);
  return {cast_to(b, b("Mul", {x, scale}), to)};
}

// --- DynamicQuantizeLinear: x; y, scale, zero point ----------------------------------------------
Types dynamic_shape(const OpArgs& args) {
  require_dtype(args, 0, DType::kF32);
  return {{.dtype = DType::kU8, .shape = args.shape(0)},
          {.dtype = DType::kF32, .shape = {}},
          {.dtype = DType::kU8, .shape = {}}};
}

// The scale is such that [0, 255] covers all of x and 0.
Values dynamic_decomposition(Builder& b, const Node& node) {
  const ValueId x = node.inputs[0];
  const auto number = [&b](double value) { return b.scalar(value, DType::kF32); };
  const Attributes to_scalar{{"keepdims", std::int64_t{0}}};
  const ValueId most = b("Max", {b("ReduceMax", {x}, to_scalar), number(0.0)});
  const ValueId least = b("Min", {b("ReduceMin", {x}, to_scalar), number(0.0)});
  const ValueId extent =
      b("Where", {b("Equal", {most, least}), number(1.0), b("Sub", {most, least})});
  const ValueId scale = b("Div", {extent, number(255.0)});
  const ValueId offset = b("Neg", {b("Div", {least, scale})});
  const ValueId zero = b("Round", {b("Clip", {offset, number(0.0), number(255.0)})});
  const ValueId q = b("Add", {b("Round", {b("Div", {x, scale})}), zero});
  Values results{cast_to(b, b("Clip", {q, number(0.0), number(255.0)}), DType::kU8), scale,
                 cast_to(b, zero, DType::kU8)};
  results.resize(node.outputs.size());
  return results;
}

const std::vector<AttributeSpec> kLayoutAttributes = {
    {"axis", "of which each index has a scale of its own (default 1), where there are several"},
    {"block_size", "indices of the axis that share a scale; 0 (default): none do"}};

std::vector<AttributeSpec> with_layout(std::vector<AttributeSpec> more) {
  more.insert(more.begin(), kLayoutAttributes.begin(), kLayoutAttributes.end());
  return more;
}

OpDef storage_cast_row() {
  return {.name = "StorageCast",
          .doc =
              "Cast from or to a type that is only stored: floats of 8 and 4 bits, integers of 4 "
              "and 2; floats are rounded to the nearest, of two to the even one, or truncated to "
              "integers, which keep their low bits",
          .domain = kTrainscopeDomain,
          .attributes = {{"to", "ONNX's number of the type"},
                         {"saturate",
                          "1 (default): what is too large becomes the greatest number; "
                          "0: infinity, or NaN where the type has none"},
                         {"round_mode", "to f8e8m0: 'up' (default), 'down' or 'nearest'"}},
          .params = storage_cast_params,
          .shape = storage_cast_shape,
          .cost = per_output_element<1>,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kMovement,
          .traits = kWholeValues,
          .examples = {"[2,3]; to=17", "[2,3]; to=18 saturate=0", "[2,3]; to=19", "[2,3]; to=20",
                       "[70,1001]; to=17", "[5]={0,3,-8,7,1}; to=22", "[5]={0,3,15,7,1}; to=21",
                       "[5]={0,0.5,-6,1.5,4}; to=23", "[4]={1,2,0.5,8}; to=24",
                       "[3]={0,1,3}; to=25", "[3]={0,1,-2}; to=26", "f8e4m3fn[4]<9; to=1",
                       "i4[2,3]<7; to=6", "u4[0]; to=1", "f8e5m2[4]<9; to=17"}};
}

std::vector<OpDef> linear_rows() {
  return {
      {.name = "QuantizeLinear",
       .doc =
           "round(x / scale) + zero point in the type of the zero point, or of output_dtype, or "
           "u8; integers beyond its range become its nearest. Where DequantizeLinear with the same "
           "scale and zero point follows, both become FakeQuantize, which has a gradient",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes =
           with_layout({{"output_dtype", "ONNX's number of the type, where there is no zero point"},
                        {"saturate", "as StorageCast's, to floats"},
                        {"precision", "ONNX's number of the type that quotients are computed in"}}),
       .shape = quantize_shape,
       .decompose = quantize_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,3], []={0.25}, u8[]={128}", "[2,3], []={0.25}",
                    "[2,3], []={0.25}, i8[]={3}", "[2,3], [3]={0.25,0.5,1}, u8[3]={1,2,3}",
                    "[3,2], [3]={0.25,0.5,1}; axis=0",
                    "[2,5], [2,3]={0.5,1,2,1,0.5,1}; axis=1 block_size=2",
                    "[2,3], []={0.25}; output_dtype=22", "[2,3], []={0.25}; output_dtype=17",
                    "[0,3], []={0.25}", "i32[4], []={0.5}, i16[]={2}"}},
      {.name = "DequantizeLinear",
       .doc = "(x - zero point) * scale in the type of the scale or of output_dtype",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = with_layout({{"output_dtype", "ONNX's number of the type"}}),
       .shape = dequantize_shape,
       .decompose = dequantize_decomposition,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"u8[2,3]<200, []={0.25}, u8[]={128}", "i8[2,3]<9, []={0.25}",
                    "u8[2,3]<200, [3]>0, u8[3]={1,2,3}",
                    "u8[2,3]<9, [3]={0.25,0.5,1}, u8[3]={1,2,3}",
                    "i32[3,2], [3]={0.25,0.5,1}; axis=0",
                    "i4[2,5]<7, [2,3]={0.5,1,2,1,0.5,1}; axis=1 block_size=2",
                    "f8e4m3fn[2,3]<9, []={0.25}", "u8[0,3], []={0.25}"}},
      {.name = "DynamicQuantizeLinear",
       .doc = "x as u8 with a scale and a zero point by its least and greatest element and 0",
       .max_outputs = 3,
       .shape = dynamic_shape,
       .decompose = dynamic_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"f32[2,3]; outputs=3", "f32[4]>0; outputs=3", "f32[]; outputs=3",
                    "f32[0]; outputs=3"}},
  };
}

}  // namespace

std::vector<OpDef> quantize_ops() {
  std::vector<OpDef> rows{storage_cast_row()};
  for (auto* more : {&linear_rows, &quantized_matmul_rows, &fake_quantize_rows}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
