// Constants that the exporter made of parameters, and the parameters of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/onnx/proto.h"

namespace trainscope {

// Rows and columns of a matrix in each other's place.
Tensor transposed(const Tensor& matrix);

// Whether the exporter writes the weight of `function` transposed when it is an operand of `op`.
bool is_folded_transpose(const std::string& function, const std::string& op, int rank);
// Whether it writes the vector that `function` reads in a shape of more dimensions.
bool is_folded_vector(const std::string& function, const Shape& shape);

// The axes of more than one slice whose slices are all equal.
std::vector<int> repeated_axes(const Tensor& tensor);
// The first slice along an axis, as a tensor with one slice there.
Tensor first_slice(const Tensor& tensor, int axis);
// The elements in a shape without axes of size 1; of a single element a vector.
Tensor without_ones(const Tensor& viewed);

// What a lookup of constant indices read: each row once, and the indices of these.
struct LookedUp {
  Tensor rows;  // [U, D]
  Tensor ids;   // int64 [...], of the constant's [..., D]
};
// Of rows that are repeated for the examples of a batch and else all different, or all one. None
// where equal rows may be of different indices: in any other order, or of equal elements.
std::optional<LookedUp> looked_up(const Tensor& constant);

// A node that gives the matrix `input` transposed as `output`.
pb::NodeProto transpose_node(const std::string& input, const std::string& output);
// A float or integer attribute, as a number.
double attribute_number(const pb::NodeProto& node, std::string_view name, double fallback);

}  // namespace trainscope
