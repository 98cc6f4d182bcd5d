// Op rows: the same elements in another memory.
#include <string_view>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types same(const OpArgs& args) { return {args.type(0)}; }

std::vector<std::string_view> examples() {
  return {"[2,3]", "[]", "[0,3]", "[301,1001]", "i64[2,3]<9", "i32[5]<9", "bool[3,7]"};
}

}  // namespace

std::vector<OpDef> transfer_ops() {
  return {
      {.name = "Offload",
       .doc = "x -> the same elements in host memory, of which the plan has an arena of its own",
       .domain = kTrainscopeDomain,
       .shape = same,
       .gradient = [](const GradArgs& g) -> Values { return {g.b("Fetch", {g.dy[0]})}; },
       .to_host = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = examples()},
      {.name = "Fetch",
       .doc = "x in host memory -> the same elements in the arena",
       .domain = kTrainscopeDomain,
       .shape = same,
       .gradient = [](const GradArgs& g) -> Values { return {g.b("Offload", {g.dy[0]})}; },
       .from_host = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = examples()},
  };
}

}  // namespace trainscope
