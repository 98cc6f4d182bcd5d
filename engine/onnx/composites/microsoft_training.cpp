// Ops of the domain com.microsoft that ONNX Runtime's training rewrites a model with, written with
// ONNX's ops: losses, sums, batch norms, fake quantization, and rows without padding.
#include <vector>

#include "engine/core/saturating.h"
#include "engine/onnx/composite_list.h"
#include "engine/onnx/composites/composites.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

// --- Sums and concatenations ---------------------------------------------------------------------
// scale_0 * a + scale_1 * b + scale_2 * c, all of one shape.
void compose_scaled_sum(Composition& c) {
  ValueId sum = kNoValue;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!c.has(i)) continue;
    const ValueId x = c.input(i);
    c.require(c.type(x) == c.type(c.input(0)), "input {} is {}, input 0 is {}; they must be alike",
              i, type_text(c.type(x)), type_text(c.type(c.input(0))));
    const ValueId term = c.scaled(x, c.attributes().number(fmt::format("scale_{}", i), 1.0));
    sum = sum == kNoValue ? term : c.add(sum, term);
  }
  c.require(sum != kNoValue, "it has no inputs");
  c.result(0, sum);
}

// Output 1: the sizes of the inputs along the axis.
void compose_concat(Composition& c) {
  const std::int64_t axis = c.attributes().integer("axis", 0);
  Ints sizes;
  for (const ValueId v : c.inputs()) {
    c.require(v != kNoValue, "an input is missing");
    const Shape shape = c.shape(v);
    sizes.push_back(shape[normalized_axis(axis, shape.rank)]);
  }
  c.require(!sizes.empty(), "it has no inputs");
  c.result(1, c.ints(sizes));
  c.result(0, c.concat(c.inputs(), axis));
}

// --- Losses over the last axis -------------------------------------------------------------------
bool is_mean(const Composition& c) {
  const std::string reduction = c.attributes().text("reduction", "mean");
  c.require_supported(reduction == "mean" || reduction == "sum",
                      "reduction is '{}'; mean and sum are supported", printable(reduction));
  return reduction == "mean";
}

ValueId sum_of_all(Composition& c, ValueId v) {
  return c("ReduceSum", {v}, {{"keepdims", std::int64_t{0}}});
}

// Scores [..., classes] and shares of the classes of the same shape.
void compose_share_loss(Composition& c) {
  const ValueId scores = c.input(0);
  const ValueId shares = c.input(1);
  const Shape shape = c.shape(scores);
  c.require(shape.rank >= 1 && c.type(scores) == c.type(shares),
            "logits {} and label {} must be alike", type_text(c.type(scores)),
            type_text(c.type(shares)));
  const ValueId log_probs = c("LogSoftmax", {scores}, {{"axis", std::int64_t{-1}}});
  std::int64_t rows = 1;
  for (int a = 0; a + 1 < shape.rank; ++a) rows *= shape[a];
  c.require(rows > 0, "logits {} hold no row", shape_text(shape));
  const double factor = is_mean(c) ? -1.0 / static_cast<double>(rows) : -1.0;
  c.result(0, c.scaled(sum_of_all(c, c.multiply(shares, log_probs)), factor));
  c.result(1, log_probs);
}

// Scores [..., classes], labels [...] and, where they are given, a weight for each label.
void compose_label_loss(Composition& c) {
  const Shape shape = c.shape(c.input(0));
  c.require(shape.rank >= 1 && shape[shape.rank - 1] > 0, "logits {} have no classes",
            shape_text(shape));
  const std::int64_t classes = shape[shape.rank - 1];
  const Ints rows{shape.elements() / classes};
  const ValueId scores = c.reshape(c.input(0), {rows[0], classes});
  const ValueId labels = c.reshape(c.input(1), rows);
  const bool mean = is_mean(c);
  const bool weighted = c.has(2);
  const std::string reduction = weighted ? "none" : mean ? "mean" : "sum";
  const std::vector<ValueId> made = c.multi("SoftmaxCrossEntropyLoss", {scores, labels},
                                            c.wants(1) ? 2 : 1, {{"reduction", reduction}});
  if (c.wants(1)) c.result(1, c.reshape(made[1], ints_of(shape)));
  if (!weighted) return c.result(0, made[0]);
  const ValueId weights = c.reshape(c.input(2), rows);
  const ValueId sum = sum_of_all(c, c.multiply(made[0], weights));
  c.result(0, mean ? c("Div", {sum, sum_of_all(c, weights)}) : sum);
}

// --- Batch norm ----------------------------------------------------------------------------------
// Mean and 1 / deviation of each channel of x [N, C, ...], as vectors.
void compose_batch_statistics(Composition& c, ValueId x) {
  Ints axes;
  for (int a = 0; a < c.shape(x).rank; ++a) {
    if (a != 1) axes.push_back(a);
  }
  const Attributes kept{{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const Ints channels{c.shape(x)[1]};
  const ValueId mean = c("ReduceMean", {x}, kept);
  const ValueId d = c("Sub", {x, mean});
  const ValueId variance = c("ReduceMean", {c.multiply(d, d)}, kept);
  const ValueId epsilon = c.scalar(c.attributes().number("epsilon", 1e-5), c.dtype(x));
  const ValueId deviation = c("Sqrt", {c.add(variance, epsilon)});
  c.result(3, c.reshape(mean, channels));
  c.result(4, c.reshape(c("Reciprocal", {deviation}), channels));
}

// BatchNormalization, with the statistics of the batch as outputs 3 and 4.
void compose_batch_norm(Composition& c) {
  const Attributes attributes{{"epsilon", c.attributes().number("epsilon", 1e-5)},
                              {"momentum", c.attributes().number("momentum", 0.9)},
                              {"training_mode", c.attributes().integer("training_mode", 1)}};
  const bool training = c.attributes().integer("training_mode", 1) != 0;
  const std::vector<ValueId> made =
      c.multi("BatchNormalization", c.inputs(), training ? 3 : 1, attributes);
  for (std::size_t i = 0; i < made.size(); ++i) c.result(i, made[i]);
  if (training && (c.wants(3) || c.wants(4))) compose_batch_statistics(c, c.input(0));
}

// --- Fake quantization ---------------------------------------------------------------------------
// Output 1: where x is in the range, that is where its gradient flows.
void compose_fake_quantize(Composition& c) {
  const double least = c.attributes().number("quant_min", 0.0);
  const double greatest = c.attributes().number("quant_max", 255.0);
  const ValueId x = c.input(0);
  const DType dtype = c.dtype(x);
  const ValueId scale = c.input(1);
  const ValueId zero = c.input(2);
  c.require(c.shape(scale).elements() == 1 && c.shape(zero).elements() == 1,
            "scale and zero_point must be one number each, are {} and {}",
            shape_text(c.shape(scale)), shape_text(c.shape(zero)));
  c.result(0, c("FakeQuantize", {x, c.reshape(scale, {}), c.reshape(zero, {})},
                {{"least", least}, {"greatest", greatest}}));
  if (!c.wants(1)) return;
  const ValueId q = c.add(c("Round", {c("Div", {x, scale})}), zero);
  const ValueId above = c("GreaterOrEqual", {q, c.scalar(least, dtype)});
  c.result(1, c("And", {above, c("LessOrEqual", {q, c.scalar(greatest, dtype)})}));
}

// --- Rows without padding ------------------------------------------------------------------------
// Fewer rows of a text, which an index each names.
void compose_row_gather(Composition& c) {
  c.require(c.shape(c.input(1)).rank == 1, "indices must be a vector, are {}",
            shape_text(c.shape(c.input(1))));
  c.result(0, c("Gather", {c.input(0), c.input(1)}, {{"axis", c.attributes().integer("axis", 0)}}));
}

// x [batch, tokens, ...], indices [n] of its tokens one after the other -> [n, ...]; batch, tokens.
void compose_unpad(Composition& c) {
  const Shape shape = c.shape(c.input(0));
  c.require(shape.rank >= 2 && c.shape(c.input(1)).rank == 1,
            "x must be [batch, tokens, ...] and indices a vector, they are {} and {}",
            shape_text(shape), shape_text(c.shape(c.input(1))));
  Ints flat(shape.span().begin() + 1, shape.span().end());
  flat[0] *= shape[0];
  c.result(1, c.ints({shape[0], shape[1]}));
  c.result(0, c("Gather", {c.reshape(c.input(0), flat), c.input(1)}, {{"axis", std::int64_t{0}}}));
}

// x [n, ...], indices [n] and batch, tokens -> [batch, tokens, ...], 0 where no row goes; the shape
// before its first axis is cut in two.
void compose_pad(Composition& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const Ints dims = c.known_ints(2);
  c.require(shape.rank >= 1 && dims.size() == 2 && c.shape(c.input(1)) == Shape{shape[0]},
            "x {} must have as many rows as there are indices, and unflatten_dims two numbers",
            shape_text(shape));
  c.require(dims[0] >= 0 && dims[1] >= 0, "unflatten_dims are {} and {}", dims[0], dims[1]);
  Ints flat = ints_of(shape);
  flat[0] = saturating_multiply(dims[0], dims[1]);
  Ints padded{dims[0], dims[1]};
  padded.insert(padded.end(), flat.begin() + 1, flat.end());
  checked_shape(padded);
  const ValueId zeros = c("Expand", {c.scalar(0.0, c.dtype(x)), c.ints(flat)});
  const ValueId places = c.reshape(c.input(1), {shape[0], 1});
  c.result(0, c.reshape(c("ScatterND", {zeros, places, x}), padded));
  c.result(1, c.ints(flat));
}

constexpr CompositeOp kRows[] = {
    {"ScaledSum", 1, 3, 1, "scale_0 scale_1 scale_2", compose_scaled_sum},
    {"ConcatTraining", 1, kAnyNumberOfInputs, 2, "axis", compose_concat},
    {"SoftmaxCrossEntropy", 1, 2, 2, "reduction", compose_share_loss},
    {"SparseSoftmaxCrossEntropy", 1, 3, 2, "reduction", compose_label_loss},
    {"BatchNormInternal", 1, 5, 5, "epsilon momentum training_mode", compose_batch_norm},
    {"FakeQuant", 1, 3, 2, "quant_min quant_max", compose_fake_quantize},
    {"ShrunkenGather", 1, 2, 1, "axis", compose_row_gather},
    {"FlattenAndUnpad", 1, 2, 2, "", compose_unpad},
    {"PadAndUnflatten", 1, 3, 2, "", compose_pad},
};

// ONNX Runtime has this one in ONNX's domain.
constexpr CompositeOp kPlainRows[] = {
    {"SparseSoftmaxCrossEntropy", 9, 3, 2, "reduction", compose_label_loss},
};

}  // namespace

std::span<const CompositeOp> microsoft_training_composites() { return kRows; }
std::span<const CompositeOp> label_loss_composites() { return kPlainRows; }

}  // namespace trainscope
