// fuse_rms_norm: x / sqrt(mean of x^2 + epsilon), with scale, as one node.
#include "engine/passes/fuse/norm.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool fuse_rms_norm(Graph& graph, PassContext& context) {
  return fuse_norms(graph, context, NormKind::kRmsNorm);
}

}  // namespace

Pass fuse_rms_norm_pass() {
  return {.name = "fuse_rms_norm",
          .doc = "Compute RMSNormalization in one node where a model spells it out.",
          .run = fuse_rms_norm,
          .in_bodies = true};
}

}  // namespace trainscope
