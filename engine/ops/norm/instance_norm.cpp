// InstanceNormalization, and ai.trainscope's gradient of it, which computes the means and
// deviations anew from x.
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr double kDefaultEpsilon = 1e-5;
constexpr AttributeSpec kEpsilon{"epsilon", "added to the variance, 1e-5"};

Params norm_params(const OpArgs& args) {
  return NormParams{.axis = 1, .epsilon = args.attributes.number("epsilon", kDefaultEpsilon)};
}

// Input `x` is [N, C, ...], those from `first_vector` on are [C].
void require_planes(const OpArgs& args, int x, int first_vector) {
  require_float(args, 0);
  require_same_dtypes(args);
  require(args.rank(x) >= 2, ErrorCode::kBadInput,
          "input {} must have a batch and a channel dimension, is {}", x, type_text(args.type(x)));
  for (int i = first_vector; i < args.input_count(); ++i) {
    require_shape(args, i, Shape{args.shape(x)[1]});
  }
}

Types norm_shape(const OpArgs& args) {
  require_planes(args, 0, 1);
  return {args.type(0)};
}

Values norm_gradient(const GradArgs& g) {
  const int outputs = g.wants(2) ? 3 : g.wants(1) ? 2 : 1;
  Values gradients = g.b.multi("InstanceNormalizationGrad", {g.dy[0], g.x[0], g.x[1]}, outputs,
                               {{"epsilon", g.node.attributes.number("epsilon", kDefaultEpsilon)}});
  gradients.resize(3, kNoValue);
  return gradients;
}

Types norm_grad_shape(const OpArgs& args) {
  require_planes(args, 1, 2);
  require_same_types(args, 0, 1);
  return {args.type(1), args.type(2), args.type(2)};
}

}  // namespace

std::vector<OpDef> instance_norm_ops() {
  return {
      {.name = "InstanceNormalization",
       .doc = "(x - mean) / sqrt(variance + epsilon) * scale + bias, mean and variance of each "
              "channel of each example.",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kEpsilon},
       .params = norm_params,
       .shape = norm_shape,
       .gradient = norm_gradient,
       .cost = per_input_element<8>,
       .in_place = first_in_place,
       .op_class = OpClass::kNorm,
       .traits = kChannelNorm,
       .examples = {"[2,3,4,5], [3], [3]", "[2,3,4], [3], [3]; epsilon=0.01", "[1,2,1,3], [2], [2]",
                    "[0,3,4], [3], [3]", "[2,3,0], [3], [3]", "[3,8,30,40], [8], [8]"}},
      {.name = "InstanceNormalizationGrad",
       .doc = "dx, dscale, dbias of InstanceNormalization from dy, x and scale.",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .max_outputs = 3,
       .attributes = {kEpsilon},
       .params = norm_params,
       .shape = norm_grad_shape,
       .cost = per_input_element<12>,
       .in_place =
           [](const OpArgs&) {
             return std::vector<InPlace>{{.output = 0, .input = 0}, {.output = 0, .input = 1}};
           },
       .op_class = OpClass::kNorm,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3,4,5], [2,3,4,5], [3]; outputs=3", "[2,3,4], [2,3,4], [3]; epsilon=0.01",
                    "[0,3,4], [0,3,4], [3]; outputs=3", "[2,3,0], [2,3,0], [3]; outputs=2",
                    "[3,8,30,40], [3,8,30,40], [8]; outputs=3"}},
  };
}

}  // namespace trainscope
