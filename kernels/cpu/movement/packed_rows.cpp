// PackRows and UnpackRows: rows in another order, those from a count on filled.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/element_bits.h"
#include "kernels/api/kernel.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// Row `from` of x goes to row `to` of y, which is filled where the row does not count.
struct Move {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
using MoveOf = Move (*)(std::int64_t row, std::int64_t named);

Move packed(std::int64_t row, std::int64_t named) { return {.from = named, .to = row}; }
Move unpacked(std::int64_t row, std::int64_t named) { return {.from = row, .to = named}; }

// x [rows, width], order [rows], count [] -> y [rows, width]
template <class T>
void move_rows(const RunArgs& run, MoveOf move_of, T fill) {
  const std::int64_t rows = run.inputs[0].shape()[0];
  const std::int64_t width = rows == 0 ? 0 : run.inputs[0].elements() / rows;
  const T* x = run.inputs[0].as<const T>();
  const auto* order = run.inputs[1].as<const std::int64_t>();
  const std::int64_t count = *run.inputs[2].as<const std::int64_t>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, rows, row_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t named = order[row];
      if (named < 0 || named >= rows) continue;
      const Move move = move_of(row, named);
      if (row < count) {
        std::copy_n(x + move.from * width, width, y + move.to * width);
      } else {
        std::fill_n(y + move.to * width, width, fill);
      }
    }
  });
}

void pack_rows(const RunArgs& run) {
  const double fill = std::get<FillParams>(run.params).value;
  const DType dtype = run.inputs[0].type.dtype;
  with_width(dtype, [&](auto* type) {
    move_rows(run, packed, element_bits<Pointee<decltype(type)>>(dtype, fill));
  });
}

void unpack_rows(const RunArgs& run) {
  with_width(run.inputs[0].type.dtype,
             [&](auto* type) { move_rows(run, unpacked, Pointee<decltype(type)>{}); });
}

}  // namespace

void add_packed_rows(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("PackRows", dtype, {.name = "pack_rows", .run = pack_rows});
    table.add("UnpackRows", dtype, {.name = "unpack_rows", .run = unpack_rows});
  }
}

}  // namespace trainscope::cpu
