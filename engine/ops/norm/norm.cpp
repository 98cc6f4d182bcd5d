// BatchNormalization, LayerNormalization and RMSNormalization, and ai.trainscope's gradients of
// them. The gradient kernels recompute means and deviations from x: no op has to keep them.
#include <utility>
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

// Only the first output may influence the loss.
void require_no_gradient_beyond_first(const GradArgs& g) {
  for (std::size_t k = 1; k < g.dy.size(); ++k) {
    require(g.dy[k] == kNoValue, ErrorCode::kBadInput,
            "output {} of {} influences the loss, but has no gradient", k, g.node.op->name);
  }
}

// --- BatchNormalization(x, scale, bias, mean, variance) ------------------------------------------

bool in_training(const OpArgs& args) { return args.attributes.integer("training_mode", 0) != 0; }

Params batch_norm_params(const OpArgs& args) {
  return NormParams{.axis = 1,
                    .epsilon = args.attributes.number("epsilon", kDefaultEpsilon),
                    .momentum = args.attributes.number("momentum", 0.9),
                    .training = in_training(args)};
}

void require_channels(const OpArgs& args, int x, int first_vector) {
  require_float(args, 0);
  require_same_dtypes(args);
  require(args.rank(x) >= 2, ErrorCode::kBadInput,
          "input {} must have a batch and a channel dimension, is {}", x, type_text(args.type(x)));
  for (int i = first_vector; i < args.input_count(); ++i) {
    if (args.has(i)) require_shape(args, i, Shape{args.shape(x)[1]});
  }
}

Types batch_norm_shape(const OpArgs& args) {
  require_channels(args, 0, 1);
  require(in_training(args) || args.output_count == 1, ErrorCode::kBadInput,
          "{} outputs asked for; the running statistics are outputs only with training_mode=1",
          args.output_count);
  return {args.type(0), args.type(3), args.type(4)};
}

std::vector<InPlace> batch_norm_in_place(const OpArgs& args) {
  std::vector<InPlace> pairs{{.output = 0, .input = 0}};
  if (args.output_count > 1) pairs.push_back({.output = 1, .input = 3});
  if (args.output_count > 2) pairs.push_back({.output = 2, .input = 4});
  return pairs;
}

// -scale * dbias / sqrt(variance + epsilon): the mean is subtracted from every x.
ValueId running_mean_gradient(const GradArgs& g, ValueId dbias, ValueId deviation) {
  return g.b("Neg", {g.b("Div", {g.b("Mul", {g.x[1], dbias}), deviation})});
}

// -scale * dscale / 2 / (variance + epsilon)
ValueId running_variance_gradient(const GradArgs& g, ValueId dscale, ValueId with_epsilon) {
  const ValueId half = g.b.scalar(-0.5, g.type(dscale).dtype);
  const ValueId product = g.b("Mul", {g.b("Mul", {g.x[1], dscale}), half});
  return g.b("Div", {product, with_epsilon});
}

Values batch_norm_gradient(const GradArgs& g) {
  require_no_gradient_beyond_first(g);
  const bool training = g.node.attributes.integer("training_mode", 0) != 0;
  const double epsilon = g.node.attributes.number("epsilon", kDefaultEpsilon);
  Values inputs{g.dy[0], g.x[0], g.x[1]};
  if (!training) inputs.insert(inputs.end(), {g.x[3], g.x[4]});
  const Values grads =
      g.b.multi("BatchNormalizationGrad", std::move(inputs), 3,
                {{"epsilon", epsilon}, {"training_mode", std::int64_t{training ? 1 : 0}}});
  Values gradients{grads[0], grads[1], grads[2], kNoValue, kNoValue};
  if (training || (!g.wants(3) && !g.wants(4))) return gradients;
  const ValueId with_epsilon = g.b("Add", {g.x[4], g.b.scalar(epsilon, g.type(g.x[4]).dtype)});
  if (g.wants(3)) gradients[3] = running_mean_gradient(g, grads[2], g.b("Sqrt", {with_epsilon}));
  if (g.wants(4)) gradients[4] = running_variance_gradient(g, grads[1], with_epsilon);
  return gradients;
}

// Inputs dy, x, scale and, outside training, mean and variance.
Types batch_norm_grad_shape(const OpArgs& args) {
  require_channels(args, 1, 2);
  require_same_types(args, 0, 1);
  const int expected = in_training(args) ? 3 : 5;
  require(args.input_count() == expected, ErrorCode::kBadInput,
          "{} inputs given, {} expected with training_mode={}", args.input_count(), expected,
          expected == 3 ? 1 : 0);
  for (int i = 0; i < expected; ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is missing", i);
  }
  return {args.type(1), args.type(2), args.type(2)};
}

std::vector<InPlace> grad_in_place(const OpArgs&) {
  return {{.output = 0, .input = 0}, {.output = 0, .input = 1}};
}

// Of the gradients that may have an addend: the sum goes on where it has been.
std::vector<InPlace> added_grad_in_place(const OpArgs& args) {
  std::vector<InPlace> pairs = grad_in_place(args);
  if (args.has(3)) pairs.insert(pairs.begin(), InPlace{.output = 0, .input = 3});
  return pairs;
}

// --- LayerNormalization(x, scale [, bias]) -------------------------------------------------------

NormParams layer_norm_params_for(const OpArgs& args, int x) {
  return NormParams{.axis = args.axis("axis", -1, args.rank(x)),
                    .epsilon = args.attributes.number("epsilon", kDefaultEpsilon)};
}
Params layer_norm_params(const OpArgs& args) { return layer_norm_params_for(args, 0); }
Params layer_norm_grad_params(const OpArgs& args) { return layer_norm_params_for(args, 1); }

// The sizes of x from `axis` on; axes of size 1 may stand before them.
void require_normalized_shape(const OpArgs& args, int input, const Shape& x, int axis) {
  const Shape& shape = args.shape(input);
  const Shape expected(x.span().subspan(static_cast<std::size_t>(axis)));
  bool fits = shape.rank >= expected.rank;
  for (int a = 0; fits && a < shape.rank; ++a) {
    const int own = a - (shape.rank - expected.rank);
    fits = shape[a] == (own < 0 ? 1 : expected[own]);
  }
  require(fits, ErrorCode::kBadInput, "input {} must be {} (x {} from axis {} on), is {}", input,
          shape_text(expected), shape_text(x), axis, shape_text(shape));
}

// Scale and bias of an x in bf16 or f16 stay f32, as the statistics do.
Types layer_norm_shape(const OpArgs& args) {
  require_float(args, 0);
  const DType upcast = computed(args.type(0).dtype);
  const int axis = args.axis("axis", -1, args.rank(0));
  const Shape& x = args.shape(0);
  for (int i = 1; i < args.input_count(); ++i) {
    if (!args.has(i)) continue;
    require_dtype(args, i, upcast);
    require_normalized_shape(args, i, x, axis);
  }
  Shape kept = x;
  for (int a = axis; a < x.rank; ++a) kept[a] = 1;
  const TensorType statistics{upcast, kept};
  return {args.type(0), statistics, statistics};
}

Values layer_norm_gradient(const GradArgs& g) {
  require_no_gradient_beyond_first(g);
  const bool bias_wanted = g.x.size() > 2 && g.x[2] != kNoValue && g.wants(2);
  const int outputs = bias_wanted ? 3 : g.wants(1) ? 2 : 1;
  const Values grads =
      g.b.multi("LayerNormalizationGrad", {g.dy[0], g.x[0], g.x[1]}, outputs,
                {{"axis", g.node.attributes.integer("axis", -1)},
                 {"epsilon", g.node.attributes.number("epsilon", kDefaultEpsilon)}});
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = grads[0];
  if (outputs > 1) gradients[1] = grads[1];
  if (outputs > 2) gradients[2] = g.b.reshape(grads[2], g.type(g.x[2]).shape);
  return gradients;
}

Types layer_norm_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_types(args, 0, 1);
  if (args.has(3)) require_same_types(args, 0, 3);
  require_dtype(args, 2, computed(args.type(1).dtype));
  require_normalized_shape(args, 2, args.shape(1), args.axis("axis", -1, args.rank(1)));
  return {args.type(1), args.type(2), args.type(2)};
}

// --- RMSNormalization(x, scale) ------------------------------------------------------------------

Params rms_norm_params_for(const OpArgs& args, int x) {
  NormParams params = layer_norm_params_for(args, x);
  params.centered = false;
  return params;
}
Params rms_norm_params(const OpArgs& args) { return rms_norm_params_for(args, 0); }
Params rms_norm_grad_params(const OpArgs& args) { return rms_norm_params_for(args, 1); }

Types rms_norm_shape(const OpArgs& args) { return {layer_norm_shape(args)[0]}; }

Types rms_norm_grad_shape(const OpArgs& args) {
  const Types types = layer_norm_grad_shape(args);
  return {types[0], types[1]};
}

Values rms_norm_gradient(const GradArgs& g) {
  const Values grads =
      g.b.multi("RMSNormalizationGrad", {g.dy[0], g.x[0], g.x[1]}, g.wants(1) ? 2 : 1,
                {{"axis", g.node.attributes.integer("axis", -1)},
                 {"epsilon", g.node.attributes.number("epsilon", kDefaultEpsilon)}});
  return {grads[0], g.wants(1) ? grads[1] : kNoValue};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kEpsilon{"epsilon", "added to the variance, 1e-5"};
constexpr AttributeSpec kTraining{"training_mode", "1: statistics of the batch, 0: given ones"};
constexpr AttributeSpec kAxis{"axis", "first normalised axis, -1"};

OpDef batch_norm_row() {
  return {
      .name = "BatchNormalization",
      .doc =
          "(x - mean) / sqrt(variance + epsilon) * scale + bias per channel; in training of "
          "the batch, with updated running statistics as further outputs.",
      .min_inputs = 5,
      .max_inputs = 5,
      .max_outputs = 3,
      .attributes = {kEpsilon, kTraining, {"momentum", "share of the old running statistics, 0.9"}},
      .params = batch_norm_params,
      .shape = batch_norm_shape,
      .gradient = batch_norm_gradient,
      .cost = per_input_element<8>,
      .in_place = batch_norm_in_place,
      .inference_form = "BatchNormalization",
      .op_class = OpClass::kNorm,
      .traits = kChannelNorm,
      .examples = {"[4,3], [3], [3], [3], [3]>0; training_mode=1 outputs=3",
                   "[2,3,4,5], [3], [3], [3], [3]>0; training_mode=1 momentum=0.7 outputs=3",
                   "[2,3,4], [3], [3], [3], [3]>0; training_mode=1 epsilon=0.1",
                   "[2,3,4,5], [3], [3], [3], [3]>0; epsilon=0.01", "[5,2], [2], [2], [2], [2]>0",
                   "[0,3,4], [3], [3], [3], [3]>0",
                   "[0,3,4], [3], [3], [3], [3]>0; training_mode=1 outputs=3",
                   "[4,6,50,50], [6], [6], [6], [6]>0; training_mode=1 outputs=3"}};
}

// ONNX's attributes cannot say the one thing that differs.
OpDef sample_batch_norm_row() {
  OpDef row = batch_norm_row();
  row.name = "SampleBatchNormalization";
  row.doc =
      "BatchNormalization whose running variance is of the sample, squares divided by one less "
      "than their number, as PyTorch updates it; models that PyTorch exported are read with it.";
  row.domain = kTrainscopeDomain;
  row.sample_variance = true;
  return row;
}

OpDef batch_norm_grad_row() {
  return {.name = "BatchNormalizationGrad",
          .doc =
              "dx, dscale, dbias of BatchNormalization from dy, x, scale (and, outside training, "
              "mean and variance).",
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 5,
          .max_outputs = 3,
          .attributes = {kEpsilon, kTraining},
          .params = batch_norm_params,
          .shape = batch_norm_grad_shape,
          .cost = per_input_element<12>,
          .in_place = grad_in_place,
          .op_class = OpClass::kNorm,
          .traits = kWholeValuesOnce,
          .examples = {"[2,3,4,5], [2,3,4,5], [3]; training_mode=1 outputs=3",
                       "[4,3], [4,3], [3], [3], [3]>0; outputs=3",
                       "[0,3], [0,3], [3]; training_mode=1 outputs=3",
                       "[4,6,40,40], [4,6,40,40], [6]; training_mode=1 outputs=3"}};
}

constexpr OpTraits kRowNorm{.sharding = kNoSharding,
                            .rows = RowKind::kNorm,
                            .rematerialize = Rematerialize::kNorm,
                            .ranges = kNoRanges};

OpDef layer_norm_row() {
  return {.name = "LayerNormalization",
          .doc =
              "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` "
              "on; mean and 1 / deviation as further outputs.",
          .min_inputs = 2,
          .max_inputs = 3,
          .max_outputs = 3,
          .attributes = {kAxis, kEpsilon, {"stash_type", "ignored: sums are formed in f64"}},
          .params = layer_norm_params,
          .shape = layer_norm_shape,
          .gradient = layer_norm_gradient,
          .cost = per_input_element<8>,
          .in_place = first_in_place,
          .axis = -1,
          .precision = Precision::kFollow,
          .f32_inputs = {1, 2},
          .op_class = OpClass::kNorm,
          .traits = kRowNorm,
          .examples = {"[2,3,4], [4], [4]", "[2,3,4], [4]", "[2,3,4], [3,4], [3,4]; axis=1",
                       "[2,3,4], [2,3,4]; axis=0 epsilon=0.1", "[3,5], [5], [5]; outputs=3",
                       "[3,5], [1,5], [5]; outputs=2", "[0,4], [4], [4]; outputs=3",
                       "[400,100], [100], [100]"}};
}

OpDef layer_norm_grad_row() {
  return {.name = "LayerNormalizationGrad",
          .doc =
              "dx, dscale, dbias of LayerNormalization from dy, x and scale; an addend is added to "
              "dx.",
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 4,
          .max_outputs = 3,
          .attributes = {kAxis, kEpsilon},
          .params = layer_norm_grad_params,
          .shape = layer_norm_grad_shape,
          .cost = per_input_element<16>,
          .in_place = added_grad_in_place,
          .added_input = 3,
          .axis = -1,
          .op_class = OpClass::kNorm,
          .traits = kWholeValuesOnce,
          .examples = {"[2,3,4], [2,3,4], [4]; outputs=3", "[2,3,4], [2,3,4], [3,4]; axis=1",
                       "[3,5], [3,5], [5]; outputs=2", "[0,4], [0,4], [4]; outputs=3",
                       "[3,5], [3,5], [5], [3,5]; outputs=3", "[3,5], [3,5], [5], [3,5]",
                       "[400,100], [400,100], [100]; outputs=3",
                       "[5,520], [5,520], [520], [5,520]; outputs=3"}};
}

// ONNX has it in later opsets than the one that stages are written in, hence our domain.
OpDef rms_norm_row() {
  return {
      .name = "RMSNormalization",
      .doc = "x / sqrt(mean of x^2 + epsilon) * scale over the axes from `axis` on.",
      .domain = kTrainscopeDomain,
      .min_inputs = 2,
      .max_inputs = 2,
      .attributes = {kAxis, kEpsilon, {"stash_type", "ignored: sums are formed in f64"}},
      .params = rms_norm_params,
      .shape = rms_norm_shape,
      .gradient = rms_norm_gradient,
      .cost = per_input_element<6>,
      .in_place = first_in_place,
      .axis = -1,
      .precision = Precision::kFollow,
      .f32_inputs = {1, 2},
      .op_class = OpClass::kNorm,
      .traits = kRowNorm,
      .examples = {"[2,3,4], [4]", "[2,3,4], [3,4]; axis=1", "[2,3,4], [2,3,4]; axis=0 epsilon=0.1",
                   "[3,5], [1,5]", "[0,4], [4]", "[400,100], [100]"}};
}

OpDef rms_norm_grad_row() {
  return {.name = "RMSNormalizationGrad",
          .doc = "dx, dscale of RMSNormalization from dy, x and scale; an addend is added to dx.",
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 4,
          .max_outputs = 2,
          .attributes = {kAxis, kEpsilon},
          .params = rms_norm_grad_params,
          .shape = rms_norm_grad_shape,
          .cost = per_input_element<12>,
          .in_place = added_grad_in_place,
          .added_input = 3,
          .axis = -1,
          .op_class = OpClass::kNorm,
          .traits = kWholeValuesOnce,
          .examples = {"[2,3,4], [2,3,4], [4]; outputs=2", "[2,3,4], [2,3,4], [3,4]; axis=1",
                       "[3,5], [3,5], [5]; outputs=2", "[0,4], [0,4], [4]; outputs=2",
                       "[3,5], [3,5], [5], [3,5]; outputs=2",
                       "[400,100], [400,100], [100]; outputs=2"}};
}

}  // namespace

std::vector<OpDef> norm_ops() {
  return {batch_norm_row(),      sample_batch_norm_row(), batch_norm_grad_row(), layer_norm_row(),
          layer_norm_grad_row(), rms_norm_row(),          rms_norm_grad_row()};
}

}  // namespace trainscope
