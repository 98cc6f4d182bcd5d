// Op row: partials added up. Programs run its kernel behind tiled sections; no pass makes a node.
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types one_float_type(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i) && args.type(i) == args.type(0), ErrorCode::kBadInput,
            "partials of one sum are all there and of one type, input {} is not", i);
  }
  return float_same_as_first(args);
}

}  // namespace

std::vector<OpDef> partials_ops() {
  return {{.name = "AddPartials",
           .doc = "the sum of the inputs, all of one shape, added up in their order",
           .domain = kTrainscopeDomain,
           .min_inputs = 1,
           .max_inputs = kVariadic,
           .shape = one_float_type,
           .cost = [](const OpArgs& args) -> Cost {
             return with_flops(args, (args.input_count() - 1) * args.type(0).elements());
           },
           .in_place = first_in_place,
           .differentiable = Differentiable::kNo,
           .op_class = OpClass::kReduction,
           .traits = kWholeValuesOnce,
           .examples = {"[2,3], [2,3]", "[5]", "[], [], []", "[0,3], [0,3]",
                        "[7,9001], [7,9001], [7,9001]"}}};
}

}  // namespace trainscope
