// fuse_silu: x * sigmoid(x) as one node.
#include <vector>

#include "engine/passes/fuse/gated.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool fuse_silu(Graph& graph, PassContext& context) {
  const std::vector<GatedPattern> patterns{{.gate = "Sigmoid",
                                            .argument = {0.0, 1.0},
                                            .plain = {},
                                            .gated = {0.0, 1.0},
                                            .fused = "Swish",
                                            .attribute = "alpha",
                                            .attribute_value = 1.0}};
  return fuse_gated(graph, context, patterns);
}

}  // namespace

Pass fuse_silu_pass() {
  return {.name = "fuse_silu",
          .doc = "Compute SiLU, x * sigmoid(x), in one node where a model spells it out.",
          .run = fuse_silu,
          .in_bodies = true};
}

}  // namespace trainscope
