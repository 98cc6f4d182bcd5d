// Rows divided by their deviation: what fuse_layer_norm and fuse_rms_norm look for.
#pragma once

#include <string>
#include <vector>

#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {

// (x - mean(x)) / sqrt(variance + epsilon) * scale + bias, or x / sqrt(mean(x^2) + epsilon) *
// scale; the last axes from `axis` on are normalised.
struct NormMatch {
  ValueId x = kNoValue;
  int axis = 0;
  double epsilon = 0.0;
  ValueId scale = kNoValue;  // kNoValue: 1
  ValueId bias = kNoValue;   // kNoValue: 0
  NodeId last = kNoNode;
  std::vector<NodeId> nodes;
};

enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };

// Replaces every norm of the kind by one node; notes what began as one and went on otherwise.
bool fuse_norms(Graph& graph, PassContext& context, NormKind kind);

}  // namespace trainscope
