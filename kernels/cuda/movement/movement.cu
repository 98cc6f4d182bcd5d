// Concatenation, splitting and triangles.
#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/movement_layout.h"
#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// A loop over the part's elements: strides of operand 0, then of operand 1.
StridedLoop part_loop(const PartOfWhole& part, std::int64_t to_stride, std::int64_t from_stride) {
  StridedLoop loop{.operands = 2};
  loop.add_axis(part.outer, {to_stride, from_stride});
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
    const T* x = input.as<const T>();
    if (!is_there(part, x, y)) {
      copy_loop(run.call, part_loop(part, part.whole_run, part.run), y, x);
    }
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
    const T* from = x + offsets[i];
    T* y = output.as<T>();
    if (is_there(part, from, y)) continue;
    copy_loop(run.call, part_loop(part, part.run, part.whole_run), y, from);
  }
}

// Of each matrix [rows, columns] the upper or the lower triangle stays.
struct Triangle {
  Divisor columns;
  Divisor rows;
  std::int64_t diagonal = 0;
  bool upper = true;
  std::uint32_t elements = 0;
};

template <class T>
__global__ void __launch_bounds__(kPackThreads) keep_triangle(Triangle shape, const T* x, T* y) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.elements) return;
  const std::uint32_t line = shape.columns.divide(i);
  const std::int64_t column = i - line * shape.columns.divisor;
  const std::int64_t row = line - shape.rows.divide(line) * shape.rows.divisor;
  const std::int64_t edge = row + shape.diagonal;
  const bool stays = shape.upper ? column >= edge : column <= edge;
  y[i] = stays ? x[i] : T{};
}

template <class T>
void trilu(const RunArgs& run) {
  const auto& params = std::get<TriluParams>(run.params);
  const Shape& shape = run.outputs[0].shape();
  const std::int64_t elements = shape.elements();
  if (elements == 0) return;
  Triangle triangle;
  triangle.columns = Divisor(static_cast<std::uint32_t>(shape[shape.rank - 1]));
  triangle.rows = Divisor(static_cast<std::uint32_t>(shape[shape.rank - 2]));
  triangle.diagonal = params.diagonal;
  triangle.upper = params.upper;
  triangle.elements = static_cast<std::uint32_t>(elements);
  launch(run.call, {.blocks = blocks_for(elements), .threads = kPackThreads}, keep_triangle<T>,
         triangle, run.inputs[0].as<const T>(), run.outputs[0].as<T>());
}

Support supports_trilu(const PrepareArgs& args) {
  return supported_if(args.outputs[0].elements() < kMaxItems,
                      "on CUDA triangles have less than 2^31 elements");
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
  for (const DType dtype : kAllDTypes) {
    table.add("Concat", dtype, {.name = "concat.cuda", .run = run_concat});
    table.add("Split", dtype, {.name = "split.cuda", .prepare = prepare_split, .run = run_split});
    table.add("Trilu", dtype, {.name = "trilu.cuda", .supports = supports_trilu, .run = run_trilu});
  }
  add_transpose(table);
  add_regions(table);
}

}  // namespace trainscope::cuda
