// Softmax and LogSoftmax over one axis, and ai.trainscope's gradients of both, which need y only.
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// A scalar is a row of one element.
int softmax_axis(const OpArgs& args) {
  return args.rank(0) == 0 ? normalized_axis(args.attributes.integer("axis", -1), 1)
                           : args.axis("axis", -1, args.rank(0));
}

Params softmax_params(const OpArgs& args) { return AxisParams{.axis = softmax_axis(args)}; }

Types softmax_shape(const OpArgs& args) {
  require_float(args, 0);
  softmax_axis(args);
  return {args.type(0)};
}

Types grad_shape(const OpArgs& args) {
  require_same_types(args, 0, 1);
  return softmax_shape(args);
}

Attributes axis_of(const GradArgs& g) { return {{"axis", g.node.attributes.integer("axis", -1)}}; }

Values softmax_gradient(const GradArgs& g) {
  return {g.b("SoftmaxGrad", {g.dy[0], g.y[0]}, axis_of(g))};
}

Values log_softmax_gradient(const GradArgs& g) {
  return {g.b("LogSoftmaxGrad", {g.dy[0], g.y[0]}, axis_of(g))};
}

constexpr AttributeSpec kAxis{"axis", "the elements along it sum to 1, -1"};

const std::vector<std::string_view> kForwardExamples = {
    "[2,5]", "[2,3,4]; axis=1", "[3,4]; axis=0",     "[1]",     "[]",
    "[0,3]", "[3,0]",           "[2,70,3]; axis=-2", "[80,64]", "[4,90,70]; axis=1"};
const std::vector<std::string_view> kGradExamples = {"[2,5], [2,5]", "[2,3,4], [2,3,4]; axis=1",
                                                     "[0,3], [0,3]", "[80,64], [80,64]",
                                                     "[4,90,70], [4,90,70]; axis=1"};

constexpr OpTraits kSoftmax{.sharding = kAlongOtherAxes,
                            .rows = RowKind::kInPlace,
                            .rematerialize = Rematerialize::kLight,
                            .ranges = kNoRanges};

OpDef softmax_row() {
  return {.name = "Softmax",
          .doc = "exp(x) / sum of exp(x) along the axis.",
          .attributes = {kAxis},
          .params = softmax_params,
          .shape = softmax_shape,
          .gradient = softmax_gradient,
          .cost = per_output_element<12>,
          .in_place = first_in_place,
          .axis = -1,
          .precision = Precision::kFollow,
          .op_class = OpClass::kAttention,
          .traits = kSoftmax,
          .examples = kForwardExamples};
}

OpDef log_softmax_row() {
  return {.name = "LogSoftmax",
          .doc = "x - log(sum of exp(x) along the axis).",
          .attributes = {kAxis},
          .params = softmax_params,
          .shape = softmax_shape,
          .gradient = log_softmax_gradient,
          .cost = per_output_element<12>,
          .in_place = first_in_place,
          .axis = -1,
          .op_class = OpClass::kAttention,
          .traits = kSoftmax,
          .examples = kForwardExamples};
}

OpDef softmax_grad_row() {
  return {.name = "SoftmaxGrad",
          .doc = "y * (dy - sum of dy * y along the axis).",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {kAxis},
          .params = softmax_params,
          .shape = grad_shape,
          .cost = per_output_element<4>,
          .in_place = any_input_in_place,
          .axis = -1,
          .op_class = OpClass::kAttention,
          .traits = sharded_once(kAlongOtherAxes),
          .examples = kGradExamples};
}

OpDef log_softmax_grad_row() {
  return {.name = "LogSoftmaxGrad",
          .doc = "dy - exp(y) * sum of dy along the axis.",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {kAxis},
          .params = softmax_params,
          .shape = grad_shape,
          .cost = per_output_element<11>,
          .in_place = any_input_in_place,
          .axis = -1,
          .op_class = OpClass::kAttention,
          .traits = kWholeValuesOnce,
          .examples = kGradExamples};
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {softmax_row(), log_softmax_row(), softmax_grad_row(), log_softmax_grad_row()};
}

}  // namespace trainscope
