// Op rows: what the ranks of a run compute together (kernels/api/communicator.h).
#include <vector>

#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {

std::vector<OpDef> collective_ops() {
  return {
      {.name = "AllReduce",
       .doc = "x -> the sum of x over the ranks of a run, added up in their order; on a device "
              "that is no rank's, x",
       .domain = kTrainscopeDomain,
       .attributes = {{"group", "in a plan for other devices: which of them add up"},
                      {"devices", "... how many those of a group are"}},
       .shape = [](const OpArgs& args) -> Types {
         require_float(args, 0);
         return {args.type(0)};
       },
       .in_place = [](const OpArgs&) { return std::vector<InPlace>{{.output = 0, .input = 0}}; },
       .op_class = OpClass::kMovement,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3]", "[]", "[0,3]", "[70,1001]"}},
  };
}

}  // namespace trainscope
