// What is folded is data movement alone, so that it can be undone exactly.
#include "engine/onnx/initializers/folded.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/attributes.h"

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

std::vector<int> repeated_axes(const Tensor& tensor) {
  std::vector<int> axes;
  const std::span<const std::int64_t> dims = tensor.shape().span();
  if (tensor.elements() == 0) return axes;
  std::size_t block = tensor.bytes();  // of one index of the axes before
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::size_t slice = block / static_cast<std::size_t>(dims[axis]);
    bool equal = dims[axis] > 1;
    for (std::size_t at = 0; equal && at < tensor.bytes(); at += block) {
      // Each slice equals the next one: the block without its end, the block without its begin.
      equal = std::memcmp(tensor.data() + at, tensor.data() + at + slice, block - slice) == 0;
    }
    if (equal) axes.push_back(static_cast<int>(axis));
    block = slice;
  }
  return axes;
}

Tensor first_slice(const Tensor& tensor, int axis) {
  Ints dims(tensor.shape().span().begin(), tensor.shape().span().end());
  std::size_t block = tensor.bytes();
  for (int i = 0; i < axis; ++i)
    block /= static_cast<std::size_t>(dims[static_cast<std::size_t>(i)]);
  const std::size_t slice = block / static_cast<std::size_t>(dims[static_cast<std::size_t>(axis)]);
  dims[static_cast<std::size_t>(axis)] = 1;
  Tensor first({.dtype = tensor.dtype(), .shape = Shape(std::span<const std::int64_t>(dims))});
  for (std::size_t from = 0, to = 0; from < tensor.bytes(); from += block, to += slice) {
    std::memcpy(first.data() + to, tensor.data() + from, slice);
  }
  return first;
}

Tensor without_ones(const Tensor& viewed) {
  Ints dims;
  for (std::int64_t dim : viewed.shape().span()) {
    if (dim != 1) dims.push_back(dim);
  }
  if (dims.empty()) dims.push_back(1);
  return Tensor(viewed).reshaped(Shape(std::span<const std::int64_t>(dims)));
}

std::optional<LookedUp> looked_up(const Tensor& constant) {
  const Shape& shape = constant.shape();
  if (shape.rank < 2 || constant.elements() == 0) return std::nullopt;
  const std::int64_t width = shape[shape.rank - 1];
  const std::int64_t count = shape.elements() / width;
  const std::int64_t period = shape.rank > 2 ? count / shape[0] : count;
  const std::size_t row_bytes = constant.bytes() / static_cast<std::size_t>(count);
  const auto row = [&](std::int64_t i) {
    return std::string_view(
        reinterpret_cast<const char*>(constant.data()) + static_cast<std::size_t>(i) * row_bytes,
        row_bytes);
  };
  std::unordered_map<std::string_view, std::int64_t> first;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string_view own = row(i);
    if (i >= period && own != row(i % period)) return std::nullopt;
    const std::size_t element = row_bytes / static_cast<std::size_t>(width);
    if (own.substr(element) == own.substr(0, row_bytes - element)) return std::nullopt;
    ids.push_back(first.emplace(own, static_cast<std::int64_t>(first.size())).first->second);
  }
  const auto distinct = static_cast<std::int64_t>(first.size());
  if (distinct != 1 && distinct != period) return std::nullopt;
  Tensor rows({.dtype = constant.dtype(), .shape = Shape{distinct, width}});
  std::memcpy(rows.data(), constant.data(), rows.bytes());
  const std::span<const std::int64_t> dims = shape.span();
  Tensor indices = Tensor::ints(ids).reshaped(Shape(dims.first(dims.size() - 1)));
  return LookedUp{.rows = std::move(rows), .ids = std::move(indices)};
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
