// Attention and its gradient as graphs of cuDNN's ops. cuDNN knows these patterns, whose engines
// never hold all scores: ops, their order and the types between them are what its own graph API
// makes of attention (cuDNN 9 developer guide, "Fused Flash Attention").
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cudnn/op_graph.h"

namespace trainscope::cuda {

// A call, or a part of one: some entries of the batch, or a group of the heads of one.
struct AttentionShape {
  cudnnDataType_t type = CUDNN_DATA_BFLOAT16;  // of all operands but the statistics and the bias
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;  // of a head
  bool packed = false;     // q, k and v lie side by side in each token
  bool causal = false;
  float scale = 1.0F;
  Dims bias = {};           // its four axes, 1 where it is broadcast; of f32. Empty: none
  std::int64_t groups = 1;  // of heads, of which this part has one: tokens hold those of all

  // Elements from one token to the next of q, of k and v, and of y.
  std::int64_t q_row() const { return (packed ? heads + 2 * kv_heads : heads) * groups * width; }
  std::int64_t kv_row() const { return packed ? q_row() : kv_heads * groups * width; }
  std::int64_t y_row() const { return heads * groups * width; }
};

// Operands: q, k, v, the bias where there is one; then largest and sum [batch, heads, tokens, 1] of
// f32, dense: the largest score of a row and the sum of exp(score - largest); y.
OpGraph attention_graph(const AttentionShape& shape);

// Operands: q, k, v, the bias where there is one, y, dy, and the logarithm of the sum of
// exp(score) [batch, heads, tokens, 1] of f32, dense; then, as large, the sums of dy * y over
// heads' elements; dv, dk, dq, laid out as v, k and q. No sum's order depends on the run: dq is not
// added up by several blocks (cuDNN keeps the gradients of the scores, [batch, heads, tokens, keys]
// of `type`, in its workspace).
OpGraph attention_grad_graph(const AttentionShape& shape);

// The largest part that divides a call and whose gradients of scores take no more memory than the
// call's q, k, v, y and their gradients do: entries of the batch, else heads of k and v of one
// entry, with the heads of q that share them, at least one. Parts are computed one after the other.
AttentionShape attention_grad_part(AttentionShape shape);

// Of a part of this call: twice the bytes of q, k, v, y and their gradients, and 256 MiB.
std::size_t most_attention_grad_workspace_bytes(const AttentionShape& shape);

}  // namespace trainscope::cuda
