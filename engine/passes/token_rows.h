// Values of which each row is a token, and what ops make of such rows.
#pragma once

#include <cstdint>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// Values as one row per token: [batch, sequence, ...] or [batch * sequence, ...].
struct TokenRows {
  std::int64_t batch = 0;
  std::int64_t length = 0;

  std::int64_t rows() const { return batch * length; }
  // Leading axes that number the rows; 0 when the shape has no rows of tokens.
  int axes(const Shape& shape) const;
  // [rows, ...]: the same elements with the rows as one axis. Of shapes that have them.
  Shape flat(const Shape& shape) const;
  // Whether v's first axes are the rows' axes of `whole`, a shape of as many dimensions.
  bool are_in(const Shape& v, const Shape& whole) const;
};

inline RowKind row_kind(const Node& node) { return node.op->traits.rows; }
// Whether a row of the result may be made of rows of other tokens.
inline bool reads_other_rows(RowKind kind) {
  return kind == RowKind::kOther || kind == RowKind::kAttention;
}
// The first axis that an op with an axis works on, of values of `rank` axes.
int first_axis(const Node& node, int rank);

}  // namespace trainscope
