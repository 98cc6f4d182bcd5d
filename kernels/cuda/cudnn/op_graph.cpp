// Sizes of what ops make, and graphs as text.
#include "kernels/cuda/cudnn/op_graph.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace trainscope::cuda {
namespace {

Dims broadcast(const Dims& a, const Dims& b) {
  Dims both = a;
  for (std::size_t axis = 0; axis < both.size(); ++axis) both[axis] = std::max(a[axis], b[axis]);
  return both;
}

std::string list(std::span<const std::int64_t> numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    if (text.size() > 1) text += ",";
    text += std::to_string(number);
  }
  return text + "]";
}

std::string exact(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%a", static_cast<double>(value));
  return text;
}

std::string_view name_of_type(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return "f32";
    case CUDNN_DATA_HALF:
      return "f16";
    case CUDNN_DATA_BFLOAT16:
      return "bf16";
    case CUDNN_DATA_INT32:
      return "i32";
    case CUDNN_DATA_BOOLEAN:
      return "bool";
    default:
      return "other";
  }
}

std::string text_of(const GraphTensor& tensor) {
  std::string text(name_of_type(tensor.type));
  text += list(tensor.dims);
  if (tensor.place == TensorPlace::kMemory) return text + "@" + list(tensor.strides);
  if (tensor.place == TensorPlace::kValue) return text + "=" + exact(tensor.value);
  return text + "virtual" + list(tensor.strides);
}

std::string text_of(const WindowParams& window) {
  const auto of = [&](const Spatial& values) {
    return list({values.data(), static_cast<std::size_t>(window.rank)});
  };
  return " stride " + of(window.stride) + " dilation " + of(window.dilation) + " pads " +
         of(window.pad_begin) + of(window.pad_end);
}

std::string text_of(const GraphOp& op) {
  const auto number = [](TensorId id) { return " " + std::to_string(uid_of(id)); };
  const std::string operands = number(op.y) + number(op.x) + number(op.b) + number(op.mask);
  switch (op.kind) {
    case GraphOpKind::kPointwise:
      return "pointwise " + std::to_string(static_cast<int>(op.pointwise)) + " axis " +
             std::to_string(op.axis) + operands;
    case GraphOpKind::kMatmul:
      return "matmul" + operands;
    case GraphOpKind::kReduction:
      return "reduction " + std::to_string(static_cast<int>(op.reduction)) + operands;
    case GraphOpKind::kReshape:
      return "reshape" + operands;
    case GraphOpKind::kConv:
      return "conv" + text_of(op.window) + operands;
    case GraphOpKind::kConvGradInput:
      return "conv_grad_input" + text_of(op.window) + operands;
    case GraphOpKind::kConvGradWeight:
      return "conv_grad_weight" + text_of(op.window) + operands;
  }
  return {};
}

}  // namespace

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(1, dims[axis]);
  }
  return strides;
}

TensorId OpGraph::memory(cudnnDataType_t type, Dims dims, Dims strides) {
  tensors_.push_back({.place = TensorPlace::kMemory,
                      .type = type,
                      .dims = std::move(dims),
                      .strides = std::move(strides)});
  operands_.push_back(TensorId{static_cast<std::int32_t>(tensors_.size() - 1)});
  return operands_.back();
}

TensorId OpGraph::value(float number, std::size_t rank) {
  tensors_.push_back({.place = TensorPlace::kValue,
                      .type = CUDNN_DATA_FLOAT,
                      .dims = Dims(rank, 1),
                      .strides = Dims(rank, 1),
                      .value = number});
  return TensorId{static_cast<std::int32_t>(tensors_.size() - 1)};
}

TensorId OpGraph::virtual_tensor(cudnnDataType_t type, Dims dims) {
  Dims strides = dense_strides(dims);
  tensors_.push_back({.place = TensorPlace::kVirtual,
                      .type = type,
                      .dims = std::move(dims),
                      .strides = std::move(strides)});
  return TensorId{static_cast<std::int32_t>(tensors_.size() - 1)};
}

TensorId OpGraph::pointwise(cudnnPointwiseMode_t mode, TensorId x, TensorId b,
                            cudnnDataType_t type) {
  Dims dims = tensor(x).dims;
  if (b != kNoTensor) dims = broadcast(dims, tensor(b).dims);
  const TensorId y = virtual_tensor(type, std::move(dims));
  ops_.push_back({.kind = GraphOpKind::kPointwise, .x = x, .b = b, .y = y, .pointwise = mode});
  return y;
}

TensorId OpGraph::index(TensorId like, std::int64_t axis) {
  const TensorId y = virtual_tensor(CUDNN_DATA_INT32, tensor(like).dims);
  ops_.push_back({.kind = GraphOpKind::kPointwise,
                  .x = like,
                  .y = y,
                  .pointwise = CUDNN_POINTWISE_GEN_INDEX,
                  .axis = axis});
  return y;
}

TensorId OpGraph::select(TensorId mask, TensorId x, TensorId otherwise) {
  const TensorId y = virtual_tensor(CUDNN_DATA_FLOAT, tensor(x).dims);
  ops_.push_back({.kind = GraphOpKind::kPointwise,
                  .x = x,
                  .b = otherwise,
                  .mask = mask,
                  .y = y,
                  .pointwise = CUDNN_POINTWISE_BINARY_SELECT});
  return y;
}

TensorId OpGraph::matmul(TensorId x, TensorId b, cudnnDataType_t type) {
  Dims dims = broadcast(tensor(x).dims, tensor(b).dims);
  dims[dims.size() - 2] = tensor(x).dims[dims.size() - 2];
  dims.back() = tensor(b).dims.back();
  const TensorId y = virtual_tensor(type, std::move(dims));
  ops_.push_back({.kind = GraphOpKind::kMatmul, .x = x, .b = b, .y = y});
  return y;
}

TensorId OpGraph::reduce(cudnnReduceTensorOp_t op, TensorId x, Dims dims) {
  const TensorId y = virtual_tensor(CUDNN_DATA_FLOAT, std::move(dims));
  ops_.push_back({.kind = GraphOpKind::kReduction, .x = x, .y = y, .reduction = op});
  return y;
}

TensorId OpGraph::transpose(TensorId x, cudnnDataType_t type) {
  Dims dims = tensor(x).dims;
  Dims strides = tensor(x).strides;
  const std::size_t last = dims.size() - 1;
  std::swap(dims[last], dims[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  const TensorId y = virtual_tensor(type, std::move(dims));
  tensors_.back().strides = std::move(strides);
  ops_.push_back({.kind = GraphOpKind::kReshape, .x = x, .y = y});
  return y;
}

TensorId OpGraph::convolve(GraphOpKind kind, TensorId x, TensorId b, const WindowParams& window,
                           Dims dims) {
  const TensorId y = virtual_tensor(CUDNN_DATA_FLOAT, std::move(dims));
  ops_.push_back({.kind = kind, .x = x, .b = b, .y = y, .window = window});
  return y;
}

void OpGraph::keep(TensorId virtual_result, cudnnDataType_t type, Dims strides) {
  GraphTensor& tensor = tensors_[static_cast<std::size_t>(virtual_result)];
  tensor.place = TensorPlace::kMemory;
  tensor.type = type;
  tensor.strides = std::move(strides);
  operands_.push_back(virtual_result);
}

std::size_t OpGraph::operand_bytes() const {
  std::int64_t bytes = 0;
  for (const TensorId id : operands_) {
    std::int64_t of_tensor = tensor(id).type == CUDNN_DATA_FLOAT ? 4 : 2;
    for (const std::int64_t size : tensor(id).dims) of_tensor *= size;
    bytes += of_tensor;
  }
  return static_cast<std::size_t>(bytes);
}

std::string OpGraph::summary() const {
  std::string text = std::to_string(ops_.size()) + (ops_.size() == 1 ? " op of" : " ops of");
  for (const TensorId id : operands_) {
    if (id != operands_.front()) text += ",";
    text += " " + std::string(name_of_type(tensor(id).type)) + list(tensor(id).dims);
  }
  return text;
}

std::string OpGraph::text() const {
  std::string text;
  for (const GraphTensor& tensor : tensors_) text += text_of(tensor) + "; ";
  for (const GraphOp& op : ops_) text += text_of(op) + "; ";
  return text;
}

}  // namespace trainscope::cuda
