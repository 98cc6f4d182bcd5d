// The op graph of a simulated cuDNN: what its descriptors said when it was finalized, in an order
// in which it can be computed.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/cuda/simulated/cudnn_descriptors.h"

namespace trainscope::simulated {

using Dims = std::vector<std::int64_t>;

struct GraphTensor {
  std::int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims dims;
  Dims strides;
  std::int64_t alignment = 1;  // bytes
  bool is_virtual = false;
  bool is_value = false;

  bool operator==(const GraphTensor&) const = default;
};

struct ConvWindow {
  bool flips = false;  // the weight, as a convolution in the strict sense does
  Dims stride;
  Dims dilation;
  Dims pad_begin;
  Dims pad_end;
};

// Operands by their uids, 0: none.
struct GraphOp {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  std::int64_t x = 0;
  std::int64_t b = 0;
  std::int64_t mask = 0;
  std::int64_t y = 0;
  cudnnPointwiseMode_t pointwise = CUDNN_POINTWISE_IDENTITY;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  std::int64_t axis = 0;
  ConvWindow window = {};
  float alpha = 1.0F;
  float beta = 0.0F;
};

struct OpGraph {
  std::map<std::int64_t, GraphTensor> tensors;  // by uid
  std::vector<GraphOp> ops;

  const GraphTensor& tensor(std::int64_t uid) const { return tensors.at(uid); }
};

// Whether a tensor, a convolution or an op makes sense; its attributes are there.
cudnnStatus_t check_tensor(const Descriptor& descriptor);
cudnnStatus_t check_convolution(const Descriptor& descriptor);
cudnnStatus_t check_op(const Descriptor& descriptor);
// Null where its ops do not make a graph.
std::shared_ptr<const OpGraph> op_graph(const Descriptor& descriptor, cudnnStatus_t* status);

}  // namespace trainscope::simulated
