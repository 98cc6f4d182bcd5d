// RotaryEmbedding and its gradient: pairs of elements of each row are rotated by the angles of its
// position, or rotated back.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {
namespace {

template <typename T>
struct Row {
  const T* x;              // [width]
  const Computed<T>* cos;  // [pairs]
  const Computed<T>* sin;  // [pairs]
  T* y;                    // [width], may be x
  std::int64_t pairs;
  Computed<T> sign;  // of sin
};

// Elements i and i + pairs are rotated together.
template <typename T>
void rotate_halves(const Row<T>& row) {
  using C = Computed<T>;
  const T* x = row.x;
  T* y = row.y;
  const C* cos = row.cos;
  const C* sin = row.sin;
  const C sign = row.sign;
  const std::int64_t pairs = row.pairs;
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const C a = computed(x[i]);
    const C b = computed(x[pairs + i]);
    const C s = sign * sin[i];
    store(y[i], a * cos[i] - b * s);
    store(y[pairs + i], b * cos[i] + a * s);
  }
}

// Elements 2i and 2i + 1 are rotated together.
template <typename T>
void rotate_neighbours(const Row<T>& row) {
  using C = Computed<T>;
  const T* x = row.x;
  T* y = row.y;
  const C* cos = row.cos;
  const C* sin = row.sin;
  const C sign = row.sign;
#pragma omp simd
  for (std::int64_t i = 0; i < row.pairs; ++i) {
    const C a = computed(x[2 * i]);
    const C b = computed(x[2 * i + 1]);
    const C s = sign * sin[i];
    store(y[2 * i], a * cos[i] - b * s);
    store(y[2 * i + 1], b * cos[i] + a * s);
  }
}

// The axes before the last: operand 0 are x and y, operand 1 the tables.
StridedLoop loop_over_rows(const Shape& x, const Shape& table) {
  StridedLoop loop{.operands = 2};
  const Strides dense = dense_strides(x);
  const Strides shared = broadcast_strides(table, x);
  for (int axis = 0; axis + 1 < x.rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    loop.add_axis(x[axis], {dense[at], shared[at]});
  }
  return loop;
}

enum class Direction : std::uint8_t { kForward, kBack };

template <typename T, Direction kDirection>
void run_rotary(const RunArgs& args) {
  using C = Computed<T>;
  const bool neighbours = std::get<AxisParams>(args.params).axis == 1;  // of [pairs, 2]
  const Shape& shape = args.inputs[0].shape();
  const Shape& table = args.inputs[1].shape();
  const std::int64_t width = shape[shape.rank - 1];
  const Row<T> first{.x = args.inputs[0].as<const T>(),
                     .cos = args.inputs[1].as<const C>(),
                     .sin = args.inputs[2].as<const C>(),
                     .y = args.outputs[0].as<T>(),
                     .pairs = table[table.rank - 1],
                     .sign = kDirection == Direction::kBack ? C(-1) : C(1)};
  const StridedLoop loop = loop_over_rows(shape, table);

  const auto rotate = [&](std::int64_t x_offset, std::int64_t table_offset) {
    Row<T> row = first;
    row.x += x_offset;
    row.y += x_offset;
    row.cos += table_offset;
    row.sin += table_offset;
    (neighbours ? rotate_neighbours<T> : rotate_halves<T>)(row);
    if (row.x != row.y) std::copy(row.x + 2 * row.pairs, row.x + width, row.y + 2 * row.pairs);
  };
  parallel_for(
      args.threads, loop.elements, row_grain(width), [&](std::int64_t begin, std::int64_t end) {
        for_each_row(loop, begin, end, [&](const Offsets& offsets, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            rotate(offsets[0] + i * loop.row_stride(0), offsets[1] + i * loop.row_stride(1));
          }
        });
      });
}

template <typename T>
void add_own(KernelTable& table) {
  table.add("RotaryEmbedding", kDTypeOf<T>,
            {.name = "rotary", .run = run_rotary<T, Direction::kForward>});
  table.add("RotaryEmbeddingGrad", kDTypeOf<T>,
            {.name = "rotary_grad", .run = run_rotary<T, Direction::kBack>});
}

}  // namespace

void add_rotary(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_own<BFloat16>(table);
  add_own<Float16>(table);
}

}  // namespace trainscope::cpu
