// What is folded is data movement alone, so that it can be undone exactly.
#include "engine/onnx/initializers/folded.h"

#include <algorithm>
#include <cstring>

#include "engine/core/error.h"

namespace trainscope {

Tensor transposed(const Tensor& matrix) {
  CHECK_INVARIANT(matrix.shape().rank == 2);
  const std::int64_t rows = matrix.shape()[0];
  const std::int64_t columns = matrix.shape()[1];
  Tensor result({.dtype = matrix.dtype(), .shape = Shape{columns, rows}});
  const std::size_t size = matrix.elements() == 0 ? 0 : matrix.bytes() / matrix.elements();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::memcpy(result.data() + static_cast<std::size_t>(c * rows + r) * size,
                  matrix.data() + static_cast<std::size_t>(r * columns + c) * size, size);
    }
  }
  return result;
}

bool is_folded_transpose(const std::string& function, const std::string& op, int rank) {
  return function.starts_with("aten.linear") && op == "MatMul" && rank == 2;
}

bool is_folded_vector(const std::string& function, const Shape& shape) {
  if (!function.starts_with("aten.group_norm") && !function.starts_with("aten.prelu") &&
      !function.starts_with("aten.native_group_norm")) {
    return false;
  }
  const std::span<const std::int64_t> dims = shape.span();
  return shape.rank > 1 && std::ranges::count_if(dims, [](auto d) { return d != 1; }) <= 1;
}

pb::NodeProto transpose_node(const std::string& input, const std::string& output) {
  pb::NodeProto node;
  node.set_name(output);
  node.set_op_type("Transpose");
  node.add_input(input);
  node.add_output(output);
  pb::AttributeProto& perm = *node.add_attribute();
  perm.set_name("perm");
  perm.set_type(pb::AttributeProto::INTS);
  perm.add_ints(1);
  perm.add_ints(0);
  return node;
}

double attribute_number(const pb::NodeProto& node, std::string_view name, double fallback) {
  for (const pb::AttributeProto& each : node.attribute()) {
    if (each.name() != name) continue;
    return each.has_f() ? static_cast<double>(each.f()) : static_cast<double>(each.i());
  }
  return fallback;
}

}  // namespace trainscope
