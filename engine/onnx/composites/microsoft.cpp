// Ops of the domain com.microsoft that ONNX Runtime's optimiser and exporters write, but those of
// attention: fused norms, activations, matmuls and dropouts, written with ONNX's ops.
#include <algorithm>

#include "engine/onnx/composites/composites.h"
#include "engine/onnx/composites/quantized_matmul.h"

namespace trainscope {
namespace {

constexpr double kNormEpsilon = 1e-12;

// --- Matmuls and activations ---------------------------------------------------------------------
ValueId transposed_matrix(Composition& c, ValueId v) {
  const int rank = c.shape(v).rank;
  if (rank < 2) return v;
  Ints order;
  for (int a = 0; a < rank; ++a) order.push_back(a);
  std::swap(order[static_cast<std::size_t>(rank - 1)], order[static_cast<std::size_t>(rank - 2)]);
  return c.transpose(v, order);
}

void compose_fused_matmul(Composition& c) {
  const Attributes& attributes = c.attributes();
  c.require_supported(
      attributes.integer("transBatchA", 0) == 0 && attributes.integer("transBatchB", 0) == 0,
      "transBatchA and transBatchB are not supported");
  ValueId a = c.input(0);
  ValueId b = c.input(1);
  if (attributes.integer("transA", 0) != 0) a = transposed_matrix(c, a);
  if (attributes.integer("transB", 0) != 0) b = transposed_matrix(c, b);
  c.result(0, c.scaled(c("MatMul", {a, b}), attributes.number("alpha", 1.0)));
}

ValueId with_bias(Composition& c, std::size_t bias) {
  return c.has(bias) ? c.add(c.input(0), c.input(bias)) : c.input(0);
}

void compose_gelu(Composition& c) { c.result(0, c("Gelu", {with_bias(c, 1)})); }

void compose_fast_gelu(Composition& c) {
  c.result(0, c("Gelu", {with_bias(c, 1)}, {{"approximate", std::string("tanh")}}));
}

void compose_quick_gelu(Composition& c) {
  const double alpha = c.attributes().number("alpha", 1.7020000219345093);
  c.result(0, c("Swish", {c.input(0)}, {{"alpha", alpha}}));
}

// --- Norms ---------------------------------------------------------------------------------------
Attributes epsilon_of(const Composition& c) {
  return {{"epsilon", c.attributes().number("epsilon", kNormEpsilon)}};
}

ValueId layer_norm(Composition& c, ValueId x, std::size_t scale, std::size_t bias) {
  std::vector<ValueId> inputs{x, c.input(scale)};
  if (c.has(bias)) inputs.push_back(c.input(bias));
  return c("LayerNormalization", std::move(inputs), epsilon_of(c));
}

// input + skip, + bias where it is given.
ValueId skip_sum(Composition& c, std::size_t bias) {
  const ValueId sum = c.add(c.input(0), c.input(1));
  return c.has(bias) ? c.add(sum, c.input(bias)) : sum;
}

void compose_skip_norm(Composition& c) {
  const ValueId sum = skip_sum(c, 4);
  c.result(3, sum);
  c.result(0, layer_norm(c, sum, 2, 3));
}

void compose_skip_rms_norm(Composition& c) {
  const ValueId sum = skip_sum(c, 3);
  c.result(3, sum);
  c.result(0, c("RMSNormalization", {sum, c.input(2)}, epsilon_of(c)));
}

// The sum of the embeddings of a word [batch, tokens], its position and its segment, normalised.
void compose_embeddings(Composition& c) {
  const ValueId words = c.input(0);
  const Shape tokens = c.shape(words);
  c.require(tokens.rank == 2, "input_ids must be [batch, tokens], are {}", shape_text(tokens));
  ValueId sum = c("Gather", {c.input(2), words});
  const ValueId positions = c.input(3);
  c.require(c.shape(positions).rank == 2 && c.shape(positions)[0] >= tokens[1],
            "position_embedding {} has too few rows for {} tokens", shape_text(c.shape(positions)),
            tokens[1]);
  sum = c.add(
      sum, c.has(8) ? c("Gather", {positions, c.input(8)}) : c.slice(positions, 0, 0, tokens[1]));
  if (c.has(1)) sum = c.add(sum, c("Gather", {c.input(4), c.input(1)}));
  c.result(2, sum);
  c.result(0, layer_norm(c, sum, 5, 6));
  if (!c.wants(1)) return;
  const ValueId lengths =
      c.has(7) ? c("ReduceSum", {c.input(7), c.ints({1})}, {{"keepdims", std::int64_t{0}}})
               : c.constant(Tensor(TensorType{.dtype = DType::kI32, .shape = {tokens[0]}}));
  c.result(1, c.cast(lengths, DType::kI32));
}

// --- Softmax and losses --------------------------------------------------------------------------
// The softmax runs over all axes from `axis` on.
void compose_bias_softmax(Composition& c) {
  const ValueId sum = c.add(c.input(0), c.input(1));
  const Shape shape = c.shape(sum);
  const int axis = normalized_axis(c.attributes().integer("axis", 1), shape.rank);
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (int a = 0; a < shape.rank; ++a) (a < axis ? rows : columns) *= shape[a];
  const bool is_last = axis == shape.rank - 1;
  const ValueId x = is_last ? sum : c.reshape(sum, {rows, columns});
  const ValueId y = c("Softmax", {x}, {{"axis", std::int64_t{-1}}});
  c.result(0, c.reshape(y, {shape.span().begin(), shape.span().end()}));
}

// ignore_index is an input of this form.
void compose_loss(Composition& c) {
  Attributes attributes{{"reduction", c.attributes().text("reduction", "mean")}};
  if (c.has(3)) {
    const Ints ignored = c.known_ints(3);
    c.require(ignored.size() == 1, "one ignore_index is expected, there are {}", ignored.size());
    attributes.set("ignore_index", ignored[0]);
  }
  std::vector<ValueId> inputs{c.input(0), c.input(1)};
  if (c.has(2)) inputs.push_back(c.input(2));
  const std::vector<ValueId> made =
      c.multi("SoftmaxCrossEntropyLoss", inputs, c.wants(1) ? 2 : 1, attributes);
  for (std::size_t i = 0; i < made.size(); ++i) c.result(i, made[i]);
}

// --- Dropout -------------------------------------------------------------------------------------
// What Dropout makes of x, with the node's inputs from `ratio` on. Its mask is output 1.
ValueId dropped(Composition& c, ValueId x, std::size_t ratio) {
  std::vector<ValueId> inputs{x};
  for (std::size_t i = ratio; i < ratio + 2; ++i) {
    inputs.push_back(c.has(i) ? c.input(i) : kNoValue);
  }
  while (inputs.back() == kNoValue) inputs.pop_back();
  const std::vector<ValueId> made = c.multi("Dropout", std::move(inputs), c.wants(1) ? 2 : 1);
  if (c.wants(1)) c.result(1, made[1]);
  return made[0];
}

// Dropout of data + bias, then + residual.
void compose_bias_dropout(Composition& c) {
  const ValueId y = dropped(c, c.add(c.input(0), c.input(1)), 3);
  c.result(0, c.has(2) ? c.add(y, c.input(2)) : y);
}

void compose_bitmask_dropout(Composition& c) {
  c.require_supported(!c.wants(1), "its mask of packed bits is not supported");
  c.result(0, dropped(c, c.input(0), 1));
}

// --- What ONNX has under the same name -----------------------------------------------------------
void compose_onnx_op(Composition& c) {
  c.require_supported(c.has_row(c.node().op), "there is no {} of ONNX, which it is", c.node().op);
  c.result(0, c(c.node().op, c.inputs(), c.attributes()));
}

constexpr CompositeOp kRows[] = {
    {"Trilu", 1, 2, 1, "upper", compose_onnx_op},
    {"FusedMatMul", 1, 2, 1, "alpha transA transB transBatchA transBatchB", compose_fused_matmul},
    {"MatMulNBits", 1, 6, 1, "K N accuracy_level bits block_size weight_prepacked",
     compose_quantized_matmul},
    {"MatMulBnb4", 1, 3, 1, "K N accuracy_level block_size quant_type training_mode transB",
     compose_four_bit_float_matmul},
    {"Gelu", 1, 1, 1, "", compose_gelu},
    {"BiasGelu", 1, 2, 1, "", compose_gelu},
    {"FastGelu", 1, 2, 1, "", compose_fast_gelu},
    {"QuickGelu", 1, 1, 1, "alpha", compose_quick_gelu},
    {"SkipLayerNormalization", 1, 5, 4, "epsilon", compose_skip_norm},
    {"SkipSimplifiedLayerNormalization", 1, 4, 4, "epsilon", compose_skip_rms_norm},
    {"EmbedLayerNormalization", 1, 9, 3, "epsilon mask_index_type", compose_embeddings},
    {"BiasSoftmax", 1, 2, 1, "axis is_inner_broadcast", compose_bias_softmax},
    {"SoftmaxCrossEntropyLossInternal", 1, 4, 2, "output_type reduction", compose_loss},
    {"BiasDropout", 1, 5, 2, "seed", compose_bias_dropout},
    {"BitmaskDropout", 1, 3, 2, "seed", compose_bitmask_dropout},
};

}  // namespace

std::span<const CompositeOp> microsoft_composites() { return kRows; }

}  // namespace trainscope
