// Op row: bits under another type.
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types bit_cast_shape(const OpArgs& args) {
  const DType to = dtype_of_onnx(args.attributes.integer("to", 0));
  require(size_of(to) == size_of(args.type(0).dtype), ErrorCode::kBadInput,
          "elements of {} cannot be taken for {}: they differ in size", type_text(args.type(0)),
          name_of(to));
  return {{.dtype = to, .shape = args.shape(0)}};
}

}  // namespace

// ONNX has it since opset 26, hence our domain.
std::vector<OpDef> bit_cast_ops() {
  return {{.name = "BitCast",
           .doc = "the bits of x as elements of another type of the same size",
           .domain = kTrainscopeDomain,
           .attributes = {{"to", "ONNX's number of the type; required"}},
           .shape = bit_cast_shape,
           .differentiable = Differentiable::kNo,
           .op_class = OpClass::kMovement,
           .traits = kWholeValues,
           .examples = {"i32[2,3]<9; to=6", "i64[4]<9; to=7", "i64[0]<9; to=7", "bool[]; to=9",
                        "i32[70,101]<9; to=6"}}};
}

}  // namespace trainscope
