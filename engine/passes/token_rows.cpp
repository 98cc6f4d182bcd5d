// Shapes that have rows of tokens.
#include "engine/passes/token_rows.h"

#include <algorithm>

#include "engine/ir/op_def.h"

namespace trainscope {
int TokenRows::axes(const Shape& shape) const {
  std::int64_t elements = 1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    elements *= shape[axis];
    if (elements == rows()) return axis + 1;
  }
  return 0;
}

Shape TokenRows::flat(const Shape& shape) const {
  Shape flat{rows()};
  for (int axis = axes(shape); axis < shape.rank; ++axis) flat.push_back(shape[axis]);
  return flat;
}

bool TokenRows::are_in(const Shape& v, const Shape& whole) const {
  const int leading = axes(whole);
  if (leading == 0 || v.rank != whole.rank) return false;
  return std::ranges::equal(v.span().first(static_cast<std::size_t>(leading)),
                            whole.span().first(static_cast<std::size_t>(leading)));
}

int first_axis(const Node& node, int rank) {
  return normalized_axis(node.attributes.integer("axis", node.op->axis.value_or(-1)), rank);
}

}  // namespace trainscope
