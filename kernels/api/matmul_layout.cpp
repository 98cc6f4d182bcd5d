// The batch axes of matmuls: broadcasting, merging, flattening.
#include "kernels/api/matmul_layout.h"

#include <algorithm>
#include <cstddef>

namespace trainscope {
namespace {

struct BatchAxis {
  std::int64_t size;
  std::int64_t a_stride;
  std::int64_t b_stride;
};

// Appends an axis below the present ones, or merges it into the last one when its matrices follow
// on each other in both operands.
void append(MatmulLayout& layout, const BatchAxis& axis) {
  if (axis.size == 1) return;
  if (layout.batch_rank > 0) {
    const auto last = static_cast<std::size_t>(layout.batch_rank - 1);
    if (layout.a_stride[last] == axis.a_stride * axis.size &&
        layout.b_stride[last] == axis.b_stride * axis.size) {
      layout.batch[last] *= axis.size;
      layout.a_stride[last] = axis.a_stride;
      layout.b_stride[last] = axis.b_stride;
      return;
    }
  }
  const auto next = static_cast<std::size_t>(layout.batch_rank++);
  layout.batch[next] = axis.size;
  layout.a_stride[next] = axis.a_stride;
  layout.b_stride[next] = axis.b_stride;
}

// Size of batch axis `axis` of `rank` (axes are aligned at the end), 1 where `shape` lacks it.
std::int64_t batch_size(const Shape& shape, int axis, int rank) {
  const int own = axis - (rank - std::max(0, shape.rank - 2));
  return own < 0 ? 1 : shape[own];
}

std::int64_t matrices(const Shape& shape, int from, int rank) {
  std::int64_t count = 1;
  for (int axis = from; axis < rank; ++axis) count *= batch_size(shape, axis, rank);
  return count;
}

void add_batch(MatmulLayout& layout, const Shape& a, const Shape& b) {
  const int rank = std::max({0, a.rank - 2, b.rank - 2});
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t a_size = batch_size(a, axis, rank);
    const std::int64_t b_size = batch_size(b, axis, rank);
    const std::int64_t size = a_size == 1 ? b_size : a_size;
    layout.size.batch *= size;
    append(layout, {.size = size,
                    .a_stride = a_size == 1 ? 0 : matrices(a, axis + 1, rank),
                    .b_stride = b_size == 1 ? 0 : matrices(b, axis + 1, rank)});
  }
}

void flatten_shared_b(MatmulLayout& layout) {
  const bool flat = layout.batch_rank == 1 && layout.a_stride[0] == 1 && layout.b_stride[0] == 0 &&
                    !layout.transpose_a;
  if (!flat) return;
  layout.size.m *= layout.size.batch;
  layout.size.batch = 1;
  layout.batch_rank = 0;
}

}  // namespace

MatmulLayout matmul_layout(const MatMulParams& params, const Shape& a, const Shape& b) {
  MatmulLayout layout;
  layout.transpose_a = params.transpose_a;
  layout.transpose_b = params.transpose_b;
  const std::int64_t a_rows = a.rank > 1 ? a[a.rank - 2] : 1;
  const std::int64_t a_columns = a[a.rank - 1];
  const std::int64_t b_rows = b.rank > 1 ? b[b.rank - 2] : b[0];
  const std::int64_t b_columns = b.rank > 1 ? b[b.rank - 1] : 1;
  layout.size.m = params.transpose_a ? a_columns : a_rows;
  layout.size.k = params.transpose_a ? a_rows : a_columns;
  layout.size.n = params.transpose_b ? b_rows : b_columns;
  add_batch(layout, a, b);
  flatten_shared_b(layout);
  return layout;
}

AddendStrides addend_strides(const Shape& c) {
  const std::int64_t columns = c.rank > 0 ? c[c.rank - 1] : 1;
  return {.row = c.elements() == columns ? 0 : columns, .column = columns == 1 ? 0 : 1};
}

}  // namespace trainscope
