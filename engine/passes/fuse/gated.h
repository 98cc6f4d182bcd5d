// Activations x * gate(x) that a model spells out: what fuse_gelu and fuse_silu look for.
#pragma once

#include <span>
#include <string_view>

#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {

// plain(x) + gated(x) * g, where g is `gate` of argument(x): in whichever order the products stand,
// it is the op `fused` with one attribute.
struct GatedPattern {
  std::string_view gate;
  Coefficients argument{};
  Coefficients plain{};
  Coefficients gated{};
  std::string_view fused;
  std::string_view attribute;
  Attribute attribute_value;
};

// Replaces every match; notes a near miss where the numbers nearly fit, or where the gate is
// multiplied by x but something keeps the rest from matching.
bool fuse_gated(Graph& graph, PassContext& context, std::span<const GatedPattern> patterns);

}  // namespace trainscope
