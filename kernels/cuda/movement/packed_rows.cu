// PackRows and UnpackRows: rows in another order, those from a count on filled.
#include <cstdint>
#include <variant>

#include "kernels/api/element_bits.h"
#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum class RowMove : std::uint8_t { kPack, kUnpack };

// Packing, row order[i] goes to row i; unpacking, row i to row order[i]. Rows i from `count` on are
// filled. A warp or a block a row. Bytes: x read, y written once, 8 a row of the order.
template <class Team, RowMove kMove, class T>
__global__ void __launch_bounds__(kTeamThreads)
    move_rows(const T* x, const std::int64_t* order, const std::int64_t* count, std::int64_t rows,
              std::int64_t width, T fill, T* y) {
  const std::int64_t counted = *count;
  for (std::int64_t row = Team::first(); row < rows; row += Team::teams()) {
    const std::int64_t named = order[row];
    if (named < 0 || named >= rows) continue;
    const T* from = x + (kMove == RowMove::kPack ? named : row) * width;
    T* to = y + (kMove == RowMove::kPack ? row : named) * width;
    for (std::int64_t i = Team::rank(); i < width; i += Team::size()) {
      to[i] = row < counted ? from[i] : fill;
    }
  }
}

// x [rows, width], order [rows], count [] -> y [rows, width]
template <RowMove kMove, class T>
void run_moves(const RunArgs& args, T fill) {
  const std::int64_t rows = args.inputs[0].shape()[0];
  const std::int64_t width = rows == 0 ? 0 : args.inputs[0].elements() / rows;
  with_team(rows, width, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, move_rows<Team, kMove, T>, args.inputs[0].as<const T>(),
           args.inputs[1].as<const std::int64_t>(), args.inputs[2].as<const std::int64_t>(), rows,
           width, fill, args.outputs[0].as<T>());
  });
}

void pack_rows(const RunArgs& args) {
  const double fill = std::get<FillParams>(args.params).value;
  const DType dtype = args.inputs[0].type.dtype;
  with_width(dtype, [&](auto* type) {
    run_moves<RowMove::kPack>(args, element_bits<Pointee<decltype(type)>>(dtype, fill));
  });
}

void unpack_rows(const RunArgs& args) {
  with_width(args.inputs[0].type.dtype,
             [&](auto* type) { run_moves<RowMove::kUnpack>(args, Pointee<decltype(type)>{}); });
}

}  // namespace

void add_packed_rows(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("PackRows", dtype, {.name = "pack_rows.cuda", .run = pack_rows});
    table.add("UnpackRows", dtype, {.name = "unpack_rows.cuda", .run = unpack_rows});
  }
}

}  // namespace trainscope::cuda
