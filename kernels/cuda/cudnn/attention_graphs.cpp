// Strides of heads in tensors, and the ops between them.
#include "kernels/cuda/cudnn/attention_graphs.h"

#include <limits>
#include <utility>

namespace trainscope::cuda {
namespace {

constexpr std::size_t kRank = 4;  // [batch, heads, tokens, elements of a head]
constexpr std::int64_t kElementBytes = 2;

// Heads that lie in rows of tokens.
Dims head_strides(std::int64_t tokens, std::int64_t row, std::int64_t width) {
  return {tokens * row, width, row, 1};
}
Dims transposed(const Dims& dims) { return {dims[0], dims[1], dims[3], dims[2]}; }

class AttentionGraphs {
 public:
  explicit AttentionGraphs(const AttentionShape& shape) : shape_(shape) {
    q_ = graph_.memory(shape.type, q_dims(), q_strides());
    k_ = graph_.memory(shape.type, transposed(kv_dims()), transposed(kv_strides()));
  }

  OpGraph forward() {
    const TensorId v = graph_.memory(shape_.type, kv_dims(), kv_strides());
    add_bias_operand();
    const TensorId scores = masked(biased_scores());
    const TensorId largest = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, row_dims());
    const TensorId shifted = graph_.pointwise(CUDNN_POINTWISE_SUB, scores, largest);
    const TensorId exponentials = graph_.pointwise(CUDNN_POINTWISE_EXP, shifted);
    const TensorId sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, row_dims());
    const TensorId weights = graph_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, shape_.type);
    const TensorId y = graph_.matmul(weights, v);
    for (const TensorId each : {largest, sum}) {
      graph_.keep(each, CUDNN_DATA_FLOAT, dense_strides(row_dims()));
    }
    graph_.keep(y, shape_.type, y_strides());
    return std::move(graph_);
  }

  OpGraph backward() {
    const TensorId v = graph_.memory(shape_.type, transposed(kv_dims()), transposed(kv_strides()));
    add_bias_operand();
    const TensorId y = graph_.memory(shape_.type, q_dims(), y_strides());
    const TensorId dy = graph_.memory(shape_.type, q_dims(), y_strides());
    const TensorId log_sum = graph_.memory(CUDNN_DATA_FLOAT, row_dims(), dense_strides(row_dims()));
    const TensorId products = graph_.pointwise(CUDNN_POINTWISE_MUL, dy, y);
    const TensorId sums = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, row_dims());
    // By 1: where weights drop out the pattern has another factor here.
    const TensorId shifts = graph_.pointwise(CUDNN_POINTWISE_MUL, sums, graph_.value(1.0F, kRank));
    graph_.keep(shifts, CUDNN_DATA_FLOAT, dense_strides(row_dims()));

    const TensorId logarithms = graph_.pointwise(CUDNN_POINTWISE_SUB, biased_scores(), log_sum);
    const TensorId weights = graph_.pointwise(CUDNN_POINTWISE_EXP, masked(logarithms));
    const TensorId dv = graph_.matmul(graph_.transpose(weights, shape_.type), dy, shape_.type);
    keep_kv_gradient(dv);

    const TensorId dweights = graph_.matmul(dy, v);
    const TensorId shifted = graph_.pointwise(CUDNN_POINTWISE_SUB, dweights, shifts);
    const TensorId dscores = graph_.pointwise(CUDNN_POINTWISE_MUL, shifted, weights);
    const TensorId scaled = graph_.pointwise(CUDNN_POINTWISE_MUL, dscores, scale());
    keep_kv_gradient(graph_.matmul(graph_.transpose(scaled, shape_.type), q_, shape_.type));

    const TensorId dq = graph_.matmul(scaled, graph_.transpose(k_, shape_.type));
    graph_.keep(dq, shape_.type, q_strides());
    return std::move(graph_);
  }

 private:
  Dims q_dims() const { return {shape_.batch, shape_.heads, shape_.tokens, shape_.width}; }
  Dims kv_dims() const { return {shape_.batch, shape_.kv_heads, shape_.keys, shape_.width}; }
  Dims row_dims() const { return {shape_.batch, shape_.heads, shape_.tokens, 1}; }
  Dims q_strides() const { return head_strides(shape_.tokens, shape_.q_row(), shape_.width); }
  Dims kv_strides() const { return head_strides(shape_.keys, shape_.kv_row(), shape_.width); }
  Dims y_strides() const { return head_strides(shape_.tokens, shape_.y_row(), shape_.width); }

  void add_bias_operand() {
    if (shape_.bias.empty()) return;
    bias_ = graph_.memory(CUDNN_DATA_FLOAT, shape_.bias, dense_strides(shape_.bias));
  }

  TensorId scale() {
    if (scale_ == kNoTensor) scale_ = graph_.value(shape_.scale, kRank);
    return scale_;
  }

  TensorId biased_scores() {
    const TensorId products = graph_.matmul(q_, k_);
    const TensorId scores = graph_.pointwise(CUDNN_POINTWISE_MUL, products, scale());
    if (bias_ == kNoTensor) return scores;
    return graph_.pointwise(CUDNN_POINTWISE_ADD, scores, bias_);
  }

  // What a causal query does not see becomes -inf.
  TensorId masked(TensorId scores) {
    if (!shape_.causal) return scores;
    const TensorId query = graph_.index(scores, 2);
    const TensorId key = graph_.index(scores, 3);
    const TensorId seen = graph_.pointwise(CUDNN_POINTWISE_CMP_GE, query, key, CUDNN_DATA_BOOLEAN);
    const TensorId least = graph_.value(-std::numeric_limits<float>::infinity(), kRank);
    return graph_.select(seen, scores, least);
  }

  // Of all heads of queries, added up over those that share k and v.
  void keep_kv_gradient(TensorId of_heads) {
    TensorId gradient = of_heads;
    if (shape_.heads != shape_.kv_heads) {
      gradient = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, kv_dims());
    }
    graph_.keep(gradient, shape_.type, kv_strides());
  }

  const AttentionShape& shape_;
  OpGraph graph_;
  TensorId q_ = kNoTensor;
  TensorId k_ = kNoTensor;  // [batch, kv_heads, width, keys]
  TensorId bias_ = kNoTensor;
  TensorId scale_ = kNoTensor;
};

// Of q, k, v, y and their gradients.
std::int64_t gradient_operand_bytes(const AttentionShape& shape) {
  const std::int64_t of_queries = shape.batch * shape.tokens * shape.heads * shape.width;
  const std::int64_t of_keys = shape.batch * shape.keys * shape.kv_heads * shape.width;
  return 4 * (of_queries + of_keys) * kElementBytes;
}

}  // namespace

OpGraph attention_graph(const AttentionShape& shape) { return AttentionGraphs(shape).forward(); }

OpGraph attention_grad_graph(const AttentionShape& shape) {
  return AttentionGraphs(shape).backward();
}

AttentionShape attention_grad_part(AttentionShape shape) {
  const std::int64_t most = gradient_operand_bytes(shape);
  const std::int64_t of_entry = shape.heads * shape.tokens * shape.keys * kElementBytes;
  std::int64_t entries = shape.batch;
  while (entries > 1 && (shape.batch % entries != 0 || entries * of_entry > most)) --entries;
  std::int64_t groups = 1;
  while (groups < shape.kv_heads && (shape.kv_heads % groups != 0 || of_entry > groups * most)) {
    ++groups;
  }
  shape.batch = entries;
  shape.heads /= groups;
  shape.kv_heads /= groups;
  shape.groups = groups;
  if (shape.bias.empty()) return shape;
  if (shape.bias[0] != 1) shape.bias[0] = entries;
  if (shape.bias[1] != 1) shape.bias[1] /= groups;
  return shape;
}

std::size_t most_attention_grad_workspace_bytes(const AttentionShape& shape) {
  return static_cast<std::size_t>(2 * gradient_operand_bytes(shape)) + (std::size_t{256} << 20);
}

}  // namespace trainscope::cuda
