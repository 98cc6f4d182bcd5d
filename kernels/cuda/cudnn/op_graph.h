// A graph of cuDNN's ops as plain data: what is computed from which tensors into which. It has no
// handle of the library, so that it can be printed, compared and tested by itself.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/api/params.h"

namespace trainscope::cuda {

using Dims = std::vector<std::int64_t>;

// Elements from one index of an axis to the next, of a dense row-major tensor.
Dims dense_strides(const Dims& dims);

enum class TensorPlace : std::uint8_t {
  kMemory,   // an operand, whose address is given when the graph runs
  kVirtual,  // between two ops, in nobody's memory
  kValue,    // one number, on the host
};

struct GraphTensor {
  TensorPlace place = TensorPlace::kVirtual;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims dims;
  Dims strides;
  float value = 0.0F;  // of kValue
};

// A tensor of a graph by its index, which plus 1 is what cuDNN knows it by (its uid).
enum class TensorId : std::int32_t {};
inline constexpr TensorId kNoTensor{-1};

enum class GraphOpKind : std::uint8_t {
  kPointwise,
  kMatmul,          // y [.., m, n] = x [.., m, k] b [.., k, n]
  kReduction,       // over the axes that y has one element of
  kReshape,         // y has the elements of x in the order of their strides
  kConv,            // y from the input x and the weight b
  kConvGradInput,   // the input's gradient y from x, the output's, and the weight b
  kConvGradWeight,  // the weight's gradient y from x, the output's, and the input b
};

struct GraphOp {
  GraphOpKind kind = GraphOpKind::kPointwise;
  TensorId x = kNoTensor;
  TensorId b = kNoTensor;
  TensorId mask = kNoTensor;  // of BINARY_SELECT: x where it is true, else b
  TensorId y = kNoTensor;
  cudnnPointwiseMode_t pointwise = CUDNN_POINTWISE_IDENTITY;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  std::int64_t axis = 0;     // of GEN_INDEX
  WindowParams window = {};  // of convolutions
};

class OpGraph {
 public:
  // An operand. They come in the order of memory() and keep().
  TensorId memory(cudnnDataType_t type, Dims dims, Dims strides);
  TensorId value(float number, std::size_t rank);

  // Each adds an op whose result is virtual, of the type and size that the op gives it: f32, of two
  // operands broadcast to each other; of one, its own.
  TensorId pointwise(cudnnPointwiseMode_t mode, TensorId x, TensorId b = kNoTensor,
                     cudnnDataType_t type = CUDNN_DATA_FLOAT);
  TensorId index(TensorId like, std::int64_t axis);
  TensorId select(TensorId mask, TensorId x, TensorId otherwise);
  TensorId matmul(TensorId x, TensorId b, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  TensorId reduce(cudnnReduceTensorOp_t op, TensorId x, Dims dims);
  // The last two axes change places, and the elements may change their type.
  TensorId transpose(TensorId x, cudnnDataType_t type);
  // One of the three convolutions, with a result of these sizes.
  TensorId convolve(GraphOpKind kind, TensorId x, TensorId b, const WindowParams& window,
                    Dims dims);
  // A virtual result becomes an operand, of this type and with these strides.
  void keep(TensorId virtual_result, cudnnDataType_t type, Dims strides);

  const GraphTensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  std::span<const GraphTensor> tensors() const { return tensors_; }
  std::span<const GraphOp> ops() const { return ops_; }
  std::span<const TensorId> operands() const { return operands_; }
  std::size_t operand_bytes() const;
  // All of it: two graphs of one text compute the same.
  std::string text() const;
  // For people: "2 ops of f32[1,64,56,56], f32[64,64,3,3], f32[64,1,1,1], f32[1,64,56,56]".
  std::string summary() const;

 private:
  TensorId virtual_tensor(cudnnDataType_t type, Dims dims);

  std::vector<GraphTensor> tensors_;
  std::vector<GraphOp> ops_;
  std::vector<TensorId> operands_;
};

inline std::int64_t uid_of(TensorId id) { return static_cast<std::int64_t>(id) + 1; }

}  // namespace trainscope::cuda
