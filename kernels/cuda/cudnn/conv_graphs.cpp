// Tensors of convolutions as cuDNN has them: with two or three spatial axes.
#include "kernels/cuda/cudnn/conv_graphs.h"

#include <utility>

namespace trainscope::cuda {
namespace {

constexpr int kLeastSpatialRank = 2;

Dims dims_of(const Shape& shape) {
  Dims dims(shape.span().begin(), shape.span().end());
  if (shape.rank - 2 < kLeastSpatialRank) dims.insert(dims.begin() + 2, 1);
  return dims;
}

WindowParams window_of(const WindowParams& window) {
  if (window.rank >= kLeastSpatialRank) return window;
  const auto second = [](const Spatial& values, std::int64_t first) {
    return Spatial{first, values[0], first};
  };
  return {.rank = kLeastSpatialRank,
          .kernel = second(window.kernel, 1),
          .stride = second(window.stride, 1),
          .dilation = second(window.dilation, 1),
          .pad_begin = second(window.pad_begin, 0),
          .pad_end = second(window.pad_end, 0)};
}

TensorId operand(OpGraph& graph, cudnnDataType_t type, const Dims& dims) {
  return graph.memory(type, dims, dense_strides(dims));
}

// Of the two operands the one that the op's result has the type of is the graph's last operand.
OpGraph one_conv(const ConvShape& shape, GraphOpKind kind, const Shape& first, const Shape& second,
                 const Shape& result, bool swapped) {
  OpGraph graph;
  const TensorId a = operand(graph, shape.type, dims_of(first));
  const TensorId b = operand(graph, shape.type, dims_of(second));
  const Dims dims = dims_of(result);
  const TensorId y =
      graph.convolve(kind, swapped ? b : a, swapped ? a : b, window_of(shape.window), dims);
  graph.keep(y, shape.type, dense_strides(dims));
  return graph;
}

}  // namespace

OpGraph conv_graph(const ConvShape& shape) {
  if (!shape.has_bias) {
    return one_conv(shape, GraphOpKind::kConv, shape.x, shape.w, shape.y, false);
  }
  OpGraph graph;
  const TensorId x = operand(graph, shape.type, dims_of(shape.x));
  const TensorId w = operand(graph, shape.type, dims_of(shape.w));
  const Dims dims = dims_of(shape.y);
  Dims of_bias(dims.size(), 1);
  of_bias[1] = dims[1];
  const TensorId bias = operand(graph, shape.type, of_bias);
  const TensorId sums = graph.convolve(GraphOpKind::kConv, x, w, window_of(shape.window), dims);
  const TensorId y = graph.pointwise(CUDNN_POINTWISE_ADD, sums, bias);
  graph.keep(y, shape.type, dense_strides(dims));
  return graph;
}

OpGraph conv_grad_input_graph(const ConvShape& shape) {
  return one_conv(shape, GraphOpKind::kConvGradInput, shape.y, shape.w, shape.x, false);
}

OpGraph conv_grad_weight_graph(const ConvShape& shape) {
  return one_conv(shape, GraphOpKind::kConvGradWeight, shape.x, shape.y, shape.w, true);
}

std::size_t most_conv_workspace_bytes(const OpGraph& graph) {
  return 2 * graph.operand_bytes() + (std::size_t{32} << 20);
}

}  // namespace trainscope::cuda
