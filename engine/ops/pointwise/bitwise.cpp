// Op rows: the bits of integers: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift.
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

void require_integers(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) {
    const DType dtype = args.type(i).dtype;
    require(!is_float(dtype) && dtype != DType::kBool, ErrorCode::kBadInput,
            "input {} must be a tensor of integers, is {}", i, type_text(args.type(i)));
  }
}

Types bitwise_shape(const OpArgs& args) {
  require_integers(args);
  if (args.input_count() == 1) return same_as_first(args);
  return broadcast_numbers(args);
}

bool shifts_left(const OpArgs& args) {
  const std::string direction = args.attributes.text("direction", "");
  require(direction == "LEFT" || direction == "RIGHT", ErrorCode::kBadInput,
          "attribute direction is '{}'; LEFT and RIGHT exist", printable(direction));
  return direction == "LEFT";
}

Types bit_shift_shape(const OpArgs& args) {
  shifts_left(args);
  return bitwise_shape(args);
}

Values bit_shift_decomposition(Builder& b, const Node& node) {
  const bool left = shifts_left(*NodeArgs(b.graph(), node));
  return {b(left ? "ShiftLeft" : "ShiftRight", node.inputs)};
}

OpDef bitwise_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 2,
          .shape = bitwise_shape,
          .cost = per_output_element<1>,
          .in_place = any_input_in_place,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kOtherPointwise,
          .examples = {"i64[2,3]<99, i64[3]<99", "i32[3,1]<99, i32[2,1,4]<99", "i64[0], i64[1]",
                       "i64[70,1001], i64[1001]", "i32[5], i32[5]={-1,-40,40,31,0}",
                       "u8[3,4]<255, u8[4]<9", "i16[5]={-32768,-1,3,1,7}, i16[5]={1,15,16,0,-1}",
                       "u64[2,3]<99, u64[3]<70"}};
}

OpDef bitwise_not_row() {
  return {.name = "BitwiseNot",
          .doc = "each bit of x the other way",
          .domain = kTrainscopeDomain,
          .shape = bitwise_shape,
          .cost = per_output_element<1>,
          .in_place = first_in_place,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kOtherPointwise,
          .examples = {"i64[2,3]", "i32[]", "i64[0]", "u16[3]<99", "i8[3]={-128,0,127}"}};
}

OpDef bit_shift_row() {
  return {.name = "BitShift",
          .doc =
              "the bits of a moved by b places; zeros come after them, and in front the sign; a "
              "negative b is as one beyond all bits",
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {{"direction", "LEFT or RIGHT; required"}},
          .shape = bit_shift_shape,
          .decompose = bit_shift_decomposition,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kComposite,
          .examples = {"i64[2,3], i64[3]<9; direction='LEFT'",
                       "i32[3]={-8,4,-1}, i32[3]={-1,-32,64}; direction='RIGHT'",
                       "i32[3]={-8,4,-1}, i32[3]={-1,1,64}; direction='LEFT'",
                       "i64[0], i64[1]; direction='RIGHT'"}};
}

}  // namespace

std::vector<OpDef> bitwise_ops() {
  return {bitwise_row("BitwiseAnd", "the bits that a and b both have"),
          bitwise_row("BitwiseOr", "the bits that a or b has"),
          bitwise_row("BitwiseXor", "the bits that one of a and b has"),
          bitwise_not_row(),
          bit_shift_row(),
          bitwise_row("ShiftLeft", "the bits of a moved b places up; 0 for b beyond all bits"),
          bitwise_row("ShiftRight",
                      "the bits of a moved b places down; the sign alone for b beyond all bits")};
}

}  // namespace trainscope
