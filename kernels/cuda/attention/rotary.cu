// RotaryEmbedding and its gradient: pairs of elements of each row are rotated by the angles of its
// position, or rotated back.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// The axes before the last: sizes of x, and strides of the tables in elements, 0 where they are
// broadcast. From the innermost outwards.
struct TableRows {
  int axes = 0;
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride[kMaxRank] = {};

  __device__ std::int64_t offset(std::int64_t row) const {
    std::int64_t offset = 0;
    for (int axis = 0; axis < axes; ++axis) {
      offset += row % size[axis] * stride[axis];
      row /= size[axis];
    }
    return offset;
  }
};

TableRows table_rows(const Shape& x, const Shape& table) {
  TableRows rows;
  std::int64_t stride = table[table.rank - 1];
  for (int axis = x.rank - 2; axis >= 0; --axis) {
    const int own = axis - (x.rank - table.rank);  // of the table
    const std::int64_t size = own < 0 ? 1 : table[own];
    rows.size[rows.axes] = x[axis];
    rows.stride[rows.axes] = size == 1 ? 0 : stride;
    ++rows.axes;
    stride *= size;
  }
  return rows;
}

template <typename T>
struct Rotary {
  const T* x;              // [rows, width]
  const Computed<T>* cos;  // [.., pairs]
  const Computed<T>* sin;  // [.., pairs]
  T* y;                    // [rows, width], may be x
  std::int64_t rows;
  std::int64_t width;
  std::int64_t pairs;
  Computed<T> sign;  // of sin
  bool neighbours;   // 2i and 2i + 1 are rotated together, else i and i + pairs
  TableRows table;
};

// A thread rotates a pair; what is behind the pairs of a row is copied. Bytes: x read, y written
// once, the tables from L2.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) rotate_pairs(const Rotary<T> a) {
  using C = Computed<T>;
  const std::int64_t items = a.width - a.pairs;  // pairs, then the rest, of a row
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < a.rows * items;
       i += threads) {
    const std::int64_t row = i / items;
    const std::int64_t item = i % items;
    const std::int64_t at = row * a.width;
    if (item >= a.pairs) {
      a.y[at + a.pairs + item] = a.x[at + a.pairs + item];
      continue;
    }
    const std::int64_t first = at + (a.neighbours ? 2 * item : item);
    const std::int64_t second = first + (a.neighbours ? 1 : a.pairs);
    const std::int64_t angle = a.table.offset(row) + item;
    const C u = static_cast<C>(a.x[first]);
    const C v = static_cast<C>(a.x[second]);
    const C c = a.cos[angle];
    const C s = a.sign * a.sin[angle];
    a.y[first] = static_cast<T>(u * c - v * s);
    a.y[second] = static_cast<T>(v * c + u * s);
  }
}

enum class Direction : std::uint8_t { kForward, kBack };

template <typename T, Direction kDirection>
void run_rotary(const RunArgs& args) {
  using C = Computed<T>;
  const Shape& shape = args.inputs[0].shape();
  const Shape& table = args.inputs[1].shape();
  const std::int64_t width = shape[shape.rank - 1];
  const std::int64_t elements = args.inputs[0].elements();
  const Rotary<T> rotary{.x = args.inputs[0].as<const T>(),
                         .cos = args.inputs[1].as<const C>(),
                         .sin = args.inputs[2].as<const C>(),
                         .y = args.outputs[0].as<T>(),
                         .rows = width == 0 ? 0 : elements / width,
                         .width = width,
                         .pairs = table[table.rank - 1],
                         .sign = kDirection == Direction::kBack ? C(-1) : C(1),
                         .neighbours = std::get<AxisParams>(args.params).axis == 1,
                         .table = table_rows(shape, table)};
  const std::int64_t items = rotary.rows * (width - rotary.pairs);
  launch(args.call, {.blocks = team_blocks(items, kTeamThreads), .threads = dim3(kTeamThreads)},
         rotate_pairs<T>, rotary);
}

template <typename T>
void add_rotary_for(KernelTable& table) {
  table.add("RotaryEmbedding", kDTypeOf<T>,
            {.name = "rotary.cuda", .run = run_rotary<T, Direction::kForward>});
  table.add("RotaryEmbeddingGrad", kDTypeOf<T>,
            {.name = "rotary_grad.cuda", .run = run_rotary<T, Direction::kBack>});
}

}  // namespace

void add_rotary(KernelTable& table) {
  add_rotary_for<float>(table);
  add_rotary_for<BFloat16>(table);
  add_rotary_for<Float16>(table);
}

}  // namespace trainscope::cuda
