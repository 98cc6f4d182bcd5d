// What the attention ops of ONNX and of com.microsoft are made of: matmuls, a bias, a softmax.
#include "engine/onnx/composites/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Whether each row of a bias leaves a key to be seen, as far as is known before the run.
bool every_row_sees(const Composition& c, ValueId bias) {
  const Tensor* known = c.known_value(bias);
  if (known == nullptr || known->shape().rank == 0) return false;
  const Tensor numbers = convert(*known, DType::kF64);
  const auto row = static_cast<std::size_t>(known->shape()[known->shape().rank - 1]);
  const std::span<const double> all = numbers.values<double>();
  for (std::size_t begin = 0; begin < all.size(); begin += row) {
    const auto sees = [](double x) { return x > kMinusInfinity; };
    if (!std::ranges::any_of(all.subspan(begin, row), sees)) return false;
  }
  return true;
}

// Halves are scaled before the matmul on both sides, by which no score becomes infinite.
ValueId scaled_matmul(Composition& c, const AttentionInputs& in, ValueId k) {
  const ValueId columns = c.transpose(k, {0, 1, 3, 2});
  if (!is_stored_only(c.dtype(in.q))) {
    return c("MatMul", {c.scaled(in.q, in.scale), columns});
  }
  const double root = std::sqrt(in.scale);
  return c("MatMul", {c.scaled(in.q, root), c.scaled(columns, root)});
}

template <typename T>
void fill_window(const KeyWindow& window, std::span<T> bias) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < window.queries; ++i) {
    for (std::int64_t j = 0; j < window.keys; ++j) {
      const std::int64_t ahead = j - (i + window.before);
      const bool seen =
          (window.left < 0 || -ahead <= window.left) && (window.right < 0 || ahead <= window.right);
      bias[at++] = seen ? T(0) : -std::numeric_limits<T>::infinity();
    }
  }
}

// True for the queries that see no key, one for each row of the bias.
ValueId unseeing_rows(Composition& c, ValueId bias) {
  const std::int64_t last = c.shape(bias).rank - 1;
  const ValueId most = c("ReduceMax", {bias}, {{"axes", Ints{last}}});
  return c("Equal", {most, c.scalar(kMinusInfinity, c.dtype(bias))});
}

ValueId softmax(Composition& c, ValueId scores, DType within) {
  const DType dtype = c.dtype(scores);
  const bool wider = size_of(within) > size_of(dtype);
  if (dtype == DType::kF16 && !wider) return softmax_by_steps(c, scores, -1);
  const ValueId x = wider ? c.cast(scores, within) : scores;
  return c.cast(c("Softmax", {x}, {{"axis", std::int64_t{-1}}}), dtype);
}

}  // namespace

ValueId softmax_by_steps(Composition& c, ValueId x, std::int64_t axis) {
  const ValueId most = c("ReduceMax", {x}, {{"axes", Ints{axis}}});
  const ValueId power = c("Exp", {c.cast(c("Sub", {x, most}), DType::kF32)});
  const ValueId e = c.cast(power, DType::kF16);
  return c("Div", {e, c("ReduceSum", {e, c.ints({axis})})});
}

ValueId by_head(Composition& c, ValueId x, std::int64_t heads) {
  const Shape shape = c.shape(x);
  c.require(shape.rank == 3 || shape.rank == 4, "{} has {} axes, 3 or 4 are expected",
            shape_text(shape), shape.rank);
  if (shape.rank == 4) return x;
  c.require(heads > 0 && shape[2] % heads == 0, "{} cannot be cut into {} heads", shape_text(shape),
            heads);
  const ValueId split = c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return c.transpose(split, {0, 2, 1, 3});
}

ValueId by_token(Composition& c, ValueId y) {
  const Shape shape = c.shape(y);
  return c.reshape(c.transpose(y, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

ValueId repeat_heads(Composition& c, ValueId x, std::int64_t times) {
  if (times == 1) return x;
  const Shape s = c.shape(x);
  const ValueId apart = c("Unsqueeze", {x, c.ints({2})});
  const ValueId repeated = c("Expand", {apart, c.ints({s[0], s[1], times, s[2], s[3]})});
  return c.reshape(repeated, {s[0], s[1] * times, s[2], s[3]});
}

ValueId window_bias(Composition& c, const KeyWindow& window, DType dtype) {
  const std::string key = fmt::format("window {} {} {} {} {} {}", window.queries, window.keys,
                                      window.before, window.left, window.right, name_of(dtype));
  return c.shared_constant(key, [&] {
    Tensor bias(TensorType{.dtype = dtype, .shape = {window.queries, window.keys}});
    if (dtype == DType::kF32) {
      fill_window(window, bias.values<float>());
    } else {
      fill_window(window, bias.values<double>());
    }
    return bias;
  });
}

ValueId mask_bias(Composition& c, ValueId mask, DType dtype) {
  return c("Where", {mask, c.scalar(0.0, dtype), c.scalar(kMinusInfinity, dtype)});
}

ValueId sum_of_biases(Composition& c, ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return c.add(a, b);
}

AttentionValues attend(Composition& c, const AttentionInputs& in, Scores scores) {
  const std::int64_t heads = c.shape(in.q)[1];
  const std::int64_t kv_heads = c.shape(in.k)[1];
  c.require(kv_heads > 0 && heads % kv_heads == 0 && c.shape(in.v)[1] == kv_heads,
            "{} heads of q cannot share {} of k and {} of v", heads, kv_heads, c.shape(in.v)[1]);
  AttentionValues out;
  const DType dtype = c.dtype(in.q);
  out.matmul = scaled_matmul(c, in, repeat_heads(c, in.k, heads / kv_heads));
  out.capped = out.matmul;
  if (in.softcap > 0.0) {
    out.capped = c.scaled(c("Tanh", {c.scaled(out.matmul, 1.0 / in.softcap)}), in.softcap);
  }
  ValueId bias = in.bias;
  ValueId unseeing = kNoValue;
  out.scores = out.capped;
  if (bias != kNoValue && !every_row_sees(c, bias)) {
    // A softmax of nothing but -infinity, and its gradient, would be NaN.
    unseeing = unseeing_rows(c, bias);
    if (scores == Scores::kKept) out.scores = c.add(out.capped, c.cast(bias, dtype));
    bias = c("Where", {unseeing, c.scalar(0.0, c.dtype(bias)), bias});
  }
  const ValueId seen = bias == kNoValue ? out.capped : c.add(out.capped, c.cast(bias, dtype));
  if (unseeing == kNoValue) out.scores = seen;
  out.weights = softmax(c, seen, in.softmax);
  if (unseeing != kNoValue) {
    out.weights = c("Where", {unseeing, c.scalar(0.0, dtype), out.weights});
  }
  out.y = c("MatMul", {out.weights, repeat_heads(c, in.v, heads / kv_heads)});
  return out;
}

}  // namespace trainscope
