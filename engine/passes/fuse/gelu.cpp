// fuse_gelu: Gelu where a model spells it out, by erf, by tanh or by a sigmoid (the quick form).
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "engine/passes/fuse/gated.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// Hendrycks, Gimpel 2016, equations 1 and 2 and the sigmoid that follows them.
std::vector<GatedPattern> patterns() {
  const double slope = std::sqrt(2.0 * std::numbers::inv_pi);
  return {{.gate = "Erf",
           .argument = {0.0, 1.0 / std::numbers::sqrt2},
           .plain = {0.0, 0.5},
           .gated = {0.0, 0.5},
           .fused = "Gelu",
           .attribute = "approximate",
           .attribute_value = std::string("none")},
          {.gate = "Tanh",
           .argument = {0.0, slope, 0.0, slope * 0.044715},
           .plain = {0.0, 0.5},
           .gated = {0.0, 0.5},
           .fused = "Gelu",
           .attribute = "approximate",
           .attribute_value = std::string("tanh")},
          {.gate = "Sigmoid",
           .argument = {0.0, 1.702},
           .plain = {},
           .gated = {0.0, 1.0},
           .fused = "Swish",
           .attribute = "alpha",
           .attribute_value = 1.702}};
}

bool fuse_gelu(Graph& graph, PassContext& context) {
  return fuse_gated(graph, context, patterns());
}

}  // namespace

Pass fuse_gelu_pass() {
  return {
      .name = "fuse_gelu",
      .doc = "Compute Gelu (by erf, by tanh, or quick) in one node where a model spells it out.",
      .run = fuse_gelu,
      .in_bodies = true};
}

}  // namespace trainscope
