// How Concat, Split, Transpose and indices see their tensors: parts of wholes, matrices inside
// tensors, places along an axis.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/api/strided_loop.h"

namespace trainscope {

// A part [outer, run] of a whole [outer, whole_run], both dense.
struct PartOfWhole {
  std::int64_t outer = 1;
  std::int64_t run = 1;
  std::int64_t whole_run = 1;
};

PartOfWhole part_of(const Shape& part, const Shape& whole, int axis);

// Whether the planner has placed the part where it goes: nothing is to be copied.
inline bool is_there(const PartOfWhole& part, const void* from, const void* to) {
  return part.outer == 1 && from == to;
}

// Where each part begins in the input's runs: state, because an output that the node leaves out has
// no shape to tell.
using PartOffsets = std::vector<std::int64_t>;

// The state of Split: PartOffsets. No workspace.
Prepared prepare_split(const PrepareArgs& args);

// A matrix inside the tensors: y[i * y_stride + j] = x[j * x_stride + i], i < rows, j < columns.
struct TransposedMatrix {
  std::int64_t rows = 1;     // the axis along which the input is contiguous
  std::int64_t columns = 1;  // the axis along which the output is contiguous
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
};

struct TransposeLayout {
  StridedLoop loop{.operands = 2};   // output, input: all axes, size 1 dropped, merged
  StridedLoop outer{.operands = 2};  // the axes around the matrix
  TransposedMatrix matrix;
  bool by_runs = true;
};

TransposeLayout transpose_layout(const Shape& input, const Shape& output,
                                 const PermutationParams& params);

// Input 1, the shape of the tensor that the indices point into; known when the program is compiled.
Shape indexed_shape(const TensorView& dims);

// ElementIndex(indices, shape).
struct ElementLayout {
  // Operand 0: the indices, dense. Operand 1: the indexed tensor, standing still along the axis.
  StridedLoop loop{.operands = 2};
  std::int64_t size = 0;     // of the axis
  std::int64_t step = 0;     // along the axis, in elements
  std::int64_t outside = 0;  // elements of the tensor
};

// The state of ElementIndex: an ElementLayout. No workspace.
Prepared prepare_element_index(const PrepareArgs& args);

}  // namespace trainscope
