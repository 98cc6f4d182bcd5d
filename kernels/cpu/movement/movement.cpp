// Concatenation, splitting and triangles.
#include "kernels/cpu/movement/movement.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/api/movement_layout.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {
namespace {

// The elements of the part (operand 0) and their places in the whole (operand 1).
StridedLoop part_loop(const PartOfWhole& part) {
  StridedLoop loop{.operands = 2};
  loop.add_axis(part.outer, {part.run, part.whole_run});
  loop.add_axis(part.run, {1, 1});
  return loop;
}

template <class T>
void concat(const RunArgs& run) {
  const int axis = std::get<AxisParams>(run.params).axis;
  T* y = run.outputs[0].as<T>();
  if (run.outputs[0].elements() == 0) return;
  for (const TensorView& input : run.inputs) {
    const PartOfWhole part = part_of(input.shape(), run.outputs[0].shape(), axis);
    const StridedLoop loop = part_loop(part);
    const T* x = input.as<const T>();
    if (is_there(part, x, y)) {
      y += part.run;
      continue;
    }
    parallel_for(run.threads, loop.elements, kElementGrain,
                 [&](std::int64_t begin, std::int64_t end) {
                   for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                     copy_row(x + at[0], loop.row_stride(0), y + at[1], loop.row_stride(1), count);
                   });
                 });
    y += part.run;
  }
}

template <class T>
void split(const RunArgs& run) {
  const T* x = run.inputs[0].as<const T>();
  const int axis = std::get<AxisParams>(run.params).axis;
  const auto& offsets = *static_cast<const PartOffsets*>(run.state);
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const TensorView& output = run.outputs[i];
    if (!output.present || output.elements() == 0) continue;
    const PartOfWhole part = part_of(output.shape(), run.inputs[0].shape(), axis);
    const StridedLoop loop = part_loop(part);
    const T* from = x + offsets[i];
    T* y = output.as<T>();
    if (is_there(part, from, y)) continue;
    parallel_for(
        run.threads, loop.elements, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
          for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
            copy_row(from + at[1], loop.row_stride(1), y + at[0], loop.row_stride(0), count);
          });
        });
  }
}

// Of row m of a matrix, the columns [begin, end) stay.
template <class T>
void trilu_row(const T* x, T* y, std::int64_t columns, std::int64_t begin, std::int64_t end) {
  begin = std::clamp<std::int64_t>(begin, 0, columns);
  end = std::clamp<std::int64_t>(end, begin, columns);
  std::fill(y, y + begin, T{});
  if (x != y) std::copy(x + begin, x + end, y + begin);
  std::fill(y + end, y + columns, T{});
}

template <class T>
void trilu(const RunArgs& run) {
  const auto& params = std::get<TriluParams>(run.params);
  const Shape& shape = run.outputs[0].shape();
  const std::int64_t rows = shape[shape.rank - 2];
  const std::int64_t columns = shape[shape.rank - 1];
  if (run.outputs[0].elements() == 0) return;
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements() / columns, row_grain(columns),
               [=](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   const std::int64_t edge = row % rows + params.diagonal;
                   trilu_row(x + row * columns, y + row * columns, columns, params.upper ? edge : 0,
                             params.upper ? columns : edge + 1);
                 }
               });
}

void run_concat(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { concat<Pointee<decltype(type)>>(run); });
}

void run_split(const RunArgs& run) {
  with_width(run.inputs[0].type.dtype, [&](auto* type) { split<Pointee<decltype(type)>>(run); });
}

void run_trilu(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { trilu<Pointee<decltype(type)>>(run); });
}

}  // namespace

void add_movement(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("Concat", dtype, {.name = "concat", .run = run_concat});
    table.add("Split", dtype, {.name = "split", .prepare = prepare_split, .run = run_split});
    table.add("Trilu", dtype, {.name = "trilu", .run = run_trilu});
  }
  add_transpose(table);
  add_regions(table);
}

}  // namespace trainscope::cpu
