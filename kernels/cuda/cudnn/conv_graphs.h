// The three convolutions as graphs of cuDNN's ops.
#pragma once

#include <cstddef>

#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"
#include "kernels/cuda/cudnn/op_graph.h"

namespace trainscope::cuda {

// x [N, C, in...], w [M, C / group, kernel...], y [N, M, out...] of one type, dense and row-major;
// products are added up in f32. One spatial axis becomes two, of which the first is 1.
struct ConvShape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  WindowParams window;
  Shape x;
  Shape w;
  Shape y;
  bool has_bias = false;  // [M], of the forward graph
};

// Operands: x, w, the bias where there is one, y.
OpGraph conv_graph(const ConvShape& shape);
// Operands: dy, w, dx.
OpGraph conv_grad_input_graph(const ConvShape& shape);
// Operands: x, dy, dw.
OpGraph conv_grad_weight_graph(const ConvShape& shape);

// Engines for tensor cores copy operands into another order, of channels side by side and padded:
// twice the operands' bytes, and 32 MiB.
std::size_t most_conv_workspace_bytes(const OpGraph& graph);

}  // namespace trainscope::cuda
