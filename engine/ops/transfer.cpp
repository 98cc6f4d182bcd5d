// Op rows: the same elements in another memory.
#include "engine/ir/builder.h"
#include "engine/ops/gradient_rules.h"
#include "engine/ops/shape_rules.h"

namespace trainscope {
namespace {

Types same(const OpArgs& args) { return {args.type(0)}; }

}  // namespace

std::vector<OpDef> transfer_ops() {
  return {
      {.name = "Offload",
       .doc = "x -> the same elements in host memory, of which the plan has an arena of its own",
       .domain = kTrainscopeDomain,
       .shape = same,
       .gradient = [](const GradArgs& g) -> Values { return {g.b("Fetch", {g.dy[0]})}; },
       .to_host = true,
       .examples = {"[2,3]", "[]", "[0,3]", "[301,1001]"}},
      {.name = "Fetch",
       .doc = "x in host memory -> the same elements in the arena",
       .domain = kTrainscopeDomain,
       .shape = same,
       .gradient = [](const GradArgs& g) -> Values { return {g.b("Offload", {g.dy[0]})}; },
       .examples = {"[2,3]", "[]", "[0,3]", "[301,1001]"}},
  };
}

}  // namespace trainscope
