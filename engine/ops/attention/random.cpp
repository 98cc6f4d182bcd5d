// Ops with random results: dropout, replayed from a counter instead of stored.
#include <algorithm>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/attention/dropout_rules.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr double kOnnxRatio = 0.5;  // ONNX's default

Params random_dropout_params(const OpArgs& args) { return dropout_params(args, kOnnxRatio); }

Types random_dropout_shape(const OpArgs& args) {
  require_dtype(args, 1, DType::kI64);
  require_rank(args, 1, 0);
  random_dropout_params(args);  // checks the ratio
  return float_same_as_first(args);
}

// --- ONNX Dropout: identity unless it trains -----------------------------------------------------
Types dropout_shape(const OpArgs& args) {
  require_float(args, 0);
  for (int i = 1; i < args.input_count(); ++i) {
    if (args.has(i)) {
      require(args.type(i).elements() == 1, ErrorCode::kBadInput,
              "input {} must hold one element, is {}", i, type_text(args.type(i)));
    }
  }
  return {args.type(0), {.dtype = DType::kBool, .shape = args.shape(0)}};
}

// With a ratio above 0 in training the step would need a random mask: a pass puts RandomDropout in
// its place before anything runs, so that this rule sees the identity cases only.
Values dropout_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const bool training = args->constant_number(2, 0.0) != 0.0;
  const double ratio = args->constant_number(1, kOnnxRatio);
  require_supported(!training || ratio == 0.0,
                    "Dropout in training mode with ratio {} has no meaning without a random "
                    "stream: it must become RandomDropout first",
                    ratio);
  const TensorType x = args->type(0);
  Values outputs = {b("Identity", {node.inputs[0]})};
  if (node.outputs.size() > 1) {
    const Ints dims(x.shape.span().begin(), x.shape.span().end());
    outputs.push_back(b("ConstantOfShape", {b.ints(dims)}, {{"value", filled(1.0, DType::kBool)}}));
  }
  return outputs;
}

}  // namespace

std::vector<OpDef> random_ops() {
  return {
      {.name = "Dropout",
       .doc = "x, ratio, training_mode -> y, mask: the identity in inference and at ratio 0; "
              "otherwise RandomDropout replaces it",
       .max_inputs = 3,
       .max_outputs = 2,
       .attributes = {{"seed", "of the generator; the engine's own seeds are used instead"}},
       .shape = dropout_shape,
       .decompose = dropout_decomposition,
       .cost = no_cost,
       .in_place = first_in_place,
       .determinism = Determinism::kRandom,  // in general: it must not be folded or merged
       .training_form = "RandomDropout",
       .op_class = OpClass::kActivation,
       .traits = kPointwiseComposite,
       .examples = {"[2,3]", "[2,3], []={0}, bool[]={1}; outputs=2", "[0,3], []={0.5}; outputs=2",
                    "[4], -, bool[]={0}", "[200,300], []={0.1}, bool[]={0}; outputs=2"}},
      {.name = "RandomDropout",
       .doc = "x, step -> x / (1 - ratio) where uniform(seed, stream, step, i) >= ratio, else 0. "
              "Its gradient is itself: the same mask again",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"ratio", "share of the elements that become 0, in [0, 1), default 0.5"},
                      kDropoutSeed,
                      kDropoutStream},
       .params = random_dropout_params,
       .shape = random_dropout_shape,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("RandomDropout", {g.dy[0], g.x[1]}, g.node.attributes), kNoValue};
       },
       .cost = per_output_element<20>,
       .in_place = first_in_place,
       .determinism = Determinism::kRandom,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3], i64[]={1}; ratio=0.25 seed=7 stream=3", "[13], i64[]={5}; ratio=0.5",
                    "[2,2], i64[]={2}; ratio=0.0", "[], i64[]={2}; ratio=0.9 seed=-1",
                    "[0,3], i64[]={2}; ratio=0.1",
                    "[7,20011], i64[]={9}; ratio=0.1 seed=1 stream=2"}},
  };
}

}  // namespace trainscope
