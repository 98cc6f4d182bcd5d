// Layouts from shapes and parameters alone.
#include "kernels/api/movement_layout.h"

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

namespace trainscope {
namespace {

std::int64_t part_size(const PrepareArgs& args, std::size_t part, std::int64_t whole) {
  const bool given = args.inputs.size() > 1 && args.inputs[1].present;
  if (!given) return whole / static_cast<std::int64_t>(args.outputs.size());
  const TensorView& sizes = args.inputs[1];  // known when the program is compiled
  return sizes.type.dtype == DType::kI32 ? sizes.as<const std::int32_t>()[part]
                                         : sizes.as<const std::int64_t>()[part];
}

}  // namespace

PartOfWhole part_of(const Shape& part, const Shape& whole, int axis) {
  PartOfWhole result;
  for (int a = 0; a < axis; ++a) result.outer *= whole[a];
  for (int a = axis; a < whole.rank; ++a) {
    result.run *= part[a];
    result.whole_run *= whole[a];
  }
  return result;
}

Prepared prepare_split(const PrepareArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  const Shape& whole = args.inputs[0].shape();
  std::int64_t inner = 1;
  for (int a = axis + 1; a < whole.rank; ++a) inner *= whole[a];
  auto offsets = std::make_shared<PartOffsets>();
  std::int64_t offset = 0;
  for (std::size_t part = 0; part < args.outputs.size(); ++part) {
    offsets->push_back(offset);
    offset += part_size(args, part, whole[axis]) * inner;
  }
  return {.workspace_bytes = 0, .state = offsets};
}

TransposeLayout transpose_layout(const Shape& input, const Shape& output,
                                 const PermutationParams& params) {
  TransposeLayout plan;
  const Strides x = dense_strides(input);
  const Strides y = dense_strides(output);
  for (std::size_t a = 0; a < static_cast<std::size_t>(output.rank); ++a) {
    const auto from = static_cast<std::size_t>(params.permutation[a]);
    plan.loop.add_axis(output.dims[a], {y[a], x[from]});
  }
  const StridedLoop& loop = plan.loop;
  plan.by_runs = loop.rank == 0 || loop.elements == 0 || loop.row_stride(1) == 1;
  if (plan.by_runs) return plan;
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  for (std::size_t a = 0; a < last; ++a) {
    if (loop.strides[1][a] == 1) {
      plan.matrix = {.rows = loop.sizes[a],
                     .columns = loop.sizes[last],
                     .x_stride = loop.strides[1][last],
                     .y_stride = loop.strides[0][a]};
    } else {
      plan.outer.add_axis(loop.sizes[a], {loop.strides[0][a], loop.strides[1][a]});
    }
  }
  return plan;
}

Shape indexed_shape(const TensorView& dims) {
  return Shape(std::span(dims.as<const std::int64_t>(), static_cast<std::size_t>(dims.elements())));
}

Prepared prepare_element_index(const PrepareArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  const Shape data = indexed_shape(args.inputs[1]);
  const Shape& shape = args.inputs[0].shape();
  const Strides dense = dense_strides(shape);
  const Strides strides = dense_strides(data);
  auto plan = std::make_shared<ElementLayout>();
  plan->size = data[axis];
  plan->step = strides[static_cast<std::size_t>(axis)];
  plan->outside = data.elements();
  for (int a = 0; a < shape.rank; ++a) {
    const auto i = static_cast<std::size_t>(a);
    plan->loop.add_axis(shape[a], {dense[i], a == axis ? 0 : strides[i]});
  }
  return {.workspace_bytes = 0, .state = plan};
}

}  // namespace trainscope
