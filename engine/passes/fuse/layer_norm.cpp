// fuse_layer_norm: (x - mean) / sqrt(variance + epsilon), with scale and bias, as one node.
#include "engine/passes/fuse/norm.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool fuse_layer_norm(Graph& graph, PassContext& context) {
  return fuse_norms(graph, context, NormKind::kLayerNorm);
}

}  // namespace

Pass fuse_layer_norm_pass() {
  return {.name = "fuse_layer_norm",
          .doc = "Compute LayerNormalization in one node where a model spells it out.",
          .run = fuse_layer_norm,
          .in_bodies = true};
}

}  // namespace trainscope
