// A tensor as rows along one axis, of which indices name some.
#pragma once

#include <cstdint>

#include "kernels/api/tensor_view.h"

namespace trainscope::cuda {

// [outer, size, inner] of the tensor, [outer, count, inner] of what is looked up.
struct IndexedRows {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
  std::int64_t count = 0;  // of indices
};

inline IndexedRows indexed_rows(const Shape& data, int axis, std::int64_t count) {
  IndexedRows rows{.size = data[axis], .count = count};
  for (int a = 0; a < axis; ++a) rows.outer *= data[a];
  for (int a = axis + 1; a < data.rank; ++a) rows.inner *= data[a];
  return rows;
}

}  // namespace trainscope::cuda
