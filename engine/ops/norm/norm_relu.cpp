// BatchNormRelu: batch norm in training, perhaps a sum (with the skip connection of a residual
// network), and Relu; and its gradient, which tells from the sign of the result what Relu let
// through. Neither holds what lies between the norm and Relu.
#include <cstdint>
#include <vector>

#include "engine/core/error.h"
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
constexpr int kResidual = 5;  // input of the op
constexpr AttributeSpec kEpsilon{"epsilon", "added to the variance, 1e-5"};

Params norm_params(const OpArgs& args) {
  return NormParams{.axis = 1,
                    .epsilon = args.attributes.number("epsilon", kDefaultEpsilon),
                    .momentum = args.attributes.number("momentum", 0.9),
                    .training = true};
}

// Inputs [first, last) are numbers per channel of input x, in f32 where x is stored in two bytes.
void require_channels(const OpArgs& args, int x, int first, int last) {
  require_float(args, x);
  require(args.rank(x) >= 2, ErrorCode::kBadInput,
          "input {} must have a batch and a channel dimension, is {}", x, type_text(args.type(x)));
  for (int i = first; i < last; ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is missing", i);
    require_dtype(args, i, computed(args.type(x).dtype));
    require_shape(args, i, Shape{args.shape(x)[1]});
  }
}

Types norm_relu_shape(const OpArgs& args) {
  require_channels(args, 0, 1, kResidual);
  if (args.has(kResidual)) require_same_types(args, 0, kResidual);
  return {args.type(0), args.type(3), args.type(4)};
}

std::vector<InPlace> norm_relu_in_place(const OpArgs& args) {
  std::vector<InPlace> pairs;
  if (args.has(kResidual)) pairs.push_back({.output = 0, .input = kResidual});
  pairs.push_back({.output = 0, .input = 0});
  if (args.output_count > 1) pairs.push_back({.output = 1, .input = 3});
  if (args.output_count > 2) pairs.push_back({.output = 2, .input = 4});
  return pairs;
}

Values norm_relu_gradient(const GradArgs& g) {
  for (std::size_t k = 1; k < g.dy.size(); ++k) {
    require(g.dy[k] == kNoValue, ErrorCode::kBadInput,
            "output {} of {} influences the loss, but has no gradient", k, g.node.op->name);
  }
  const bool adds = g.x.size() > kResidual && g.x[kResidual] != kNoValue && g.wants(kResidual);
  const Values grads =
      g.b.multi("BatchNormReluGrad", {g.dy[0], g.y[0], g.x[0], g.x[1]}, adds ? 4 : 3,
                {{"epsilon", g.node.attributes.number("epsilon", kDefaultEpsilon)}});
  Values gradients{grads[0], grads[1], grads[2], kNoValue, kNoValue};
  if (g.x.size() > kResidual) gradients.push_back(adds ? grads[3] : kNoValue);
  return gradients;
}

// Inputs dy, y, x and scale.
Types norm_relu_grad_shape(const OpArgs& args) {
  require_channels(args, 2, 3, 4);
  require_same_types(args, 0, 2);
  require_same_types(args, 1, 2);
  return {args.type(2), args.type(3), args.type(3), args.type(2)};
}

// What comes from above is overwritten by dx alone: the residual's gradient takes the place of a
// result of the forward phase.
std::vector<InPlace> norm_relu_grad_in_place(const OpArgs& args) {
  std::vector<InPlace> pairs{{.output = 0, .input = 0}};
  if (args.output_count > 3) {
    pairs.push_back({.output = 3, .input = 1});
    pairs.push_back({.output = 3, .input = 2});
  }
  pairs.push_back({.output = 0, .input = 1});
  pairs.push_back({.output = 0, .input = 2});
  return pairs;
}

OpDef norm_relu_row() {
  return {.name = "BatchNormRelu",
          .doc =
              "Relu of BatchNormalization with the statistics of the batch, to which input 5 is "
              "added if it is given; updated running statistics as further outputs.",
          .domain = kTrainscopeDomain,
          .min_inputs = 5,
          .max_inputs = 6,
          .max_outputs = 3,
          .attributes = {kEpsilon, {"momentum", "share of the old running statistics, 0.9"}},
          .params = norm_params,
          .shape = norm_relu_shape,
          .gradient = norm_relu_gradient,
          .cost = per_input_element<10>,
          .in_place = norm_relu_in_place,
          .added_input = kResidual,
          .precision = Precision::kFollow,
          .f32_inputs = {1, 2, 3, 4},
          .op_class = OpClass::kNorm,
          .traits = kChannelNorm,
          // Small: central differences know no Relu that switches. Its gradient's are larger.
          .examples = {"[4,3], [3], [3], [3], [3]>0; outputs=3",
                       "[2,3,4,5], [3], [3], [3], [3]>0, [2,3,4,5]; momentum=0.7 outputs=3",
                       "[2,3,4], [3], [3], [3], [3]>0; epsilon=0.1",
                       "[0,3,4], [3], [3], [3], [3]>0, [0,3,4]; outputs=3"}};
}

OpDef sample_norm_relu_row() {
  OpDef row = norm_relu_row();
  row.name = "SampleBatchNormRelu";
  row.doc = "BatchNormRelu of SampleBatchNormalization: the running variance is of the sample.";
  row.sample_variance = true;
  return row;
}

OpDef norm_relu_grad_row() {
  return {.name = "BatchNormReluGrad",
          .doc =
              "dx, dscale, dbias and the gradient of input 5 of BatchNormRelu from dy, y, x and "
              "scale.",
          .domain = kTrainscopeDomain,
          .min_inputs = 4,
          .max_inputs = 4,
          .max_outputs = 4,
          .attributes = {kEpsilon},
          .params = norm_params,
          .shape = norm_relu_grad_shape,
          .cost = per_input_element<14>,
          .in_place = norm_relu_grad_in_place,
          .op_class = OpClass::kNorm,
          .traits = kWholeValuesOnce,
          .examples = {"[2,3,4,5], [2,3,4,5], [2,3,4,5], [3]; outputs=4",
                       "[4,3], [4,3], [4,3], [3]; outputs=3 epsilon=0.1",
                       "[0,3], [0,3], [0,3], [3]; outputs=4",
                       "[4,6,40,40], [4,6,40,40], [4,6,40,40], [6]; outputs=4"}};
}

}  // namespace

std::vector<OpDef> norm_relu_ops() {
  return {norm_relu_row(), sample_norm_relu_row(), norm_relu_grad_row()};
}

}  // namespace trainscope
