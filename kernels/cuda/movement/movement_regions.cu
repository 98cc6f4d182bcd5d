// Tensors cut out of, set into or repeated to other shapes.
#include <memory>
#include <variant>

#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// --- Slice and SliceGrad: a dense tensor and a region of a larger one ----------------------------
struct RegionPlan {
  StridedLoop loop{.operands = 2};  // what is written, what is read
  std::int64_t offset = 0;          // of the region in the larger tensor
};

// `dense` is operand 0 or 1.
Prepared region_plan(const Shape& dense, const Shape& larger, const SliceParams& params,
                     int operand) {
  auto plan = std::make_shared<RegionPlan>();
  const bool empty = dense.elements() == 0;  // begins nowhere, whatever a model says
  const Strides dense_stride = dense_strides(dense);
  const Strides larger_stride = dense_strides(larger);
  for (std::size_t a = 0; a < static_cast<std::size_t>(dense.rank); ++a) {
    if (!empty) plan->offset += params.start[a] * larger_stride[a];
    // A single element takes no step.
    const std::int64_t step = !empty && dense.dims[a] > 1 ? params.step[a] : 0;
    Offsets strides{};
    strides[static_cast<std::size_t>(operand)] = dense_stride[a];
    strides[static_cast<std::size_t>(1 - operand)] = step * larger_stride[a];
    plan->loop.add_axis(dense.dims[a], strides);
  }
  return {.workspace_bytes = 0, .state = plan};
}

Prepared prepare_slice(const PrepareArgs& args) {
  return region_plan(args.outputs[0].shape(), args.inputs[0].shape(),
                     std::get<SliceParams>(args.params), 0);
}

Prepared prepare_slice_grad(const PrepareArgs& args) {
  return region_plan(args.inputs[0].shape(), args.outputs[0].shape(),
                     std::get<SliceParams>(args.params), 1);
}

template <class T>
void slice(const RunArgs& run) {
  const auto& plan = *static_cast<const RegionPlan*>(run.state);
  if (run.outputs[0].elements() == 0) return;
  const T* x = run.inputs[0].as<const T>() + plan.offset;
  T* y = run.outputs[0].as<T>();
  if (x == y) return;  // placed where it is: only a region in one piece is
  copy_loop(run.call, plan.loop, y, x);
}

template <class T>
void slice_grad(const RunArgs& run) {
  const auto& plan = *static_cast<const RegionPlan*>(run.state);
  if (run.outputs[0].elements() == 0) return;
  T* dx = run.outputs[0].as<T>();
  fill_zeros(run.call, dx, run.outputs[0].elements());
  copy_loop(run.call, plan.loop, dx + plan.offset, run.inputs[0].as<const T>());
}

// --- Expand --------------------------------------------------------------------------------------
Prepared prepare_expand(const PrepareArgs& args) {
  return {.workspace_bytes = 0,
          .state = std::make_shared<const StridedLoop>(
              broadcast_loop(args.outputs[0].shape(), args.inputs.first(1)))};
}

template <class T>
void expand(const RunArgs& run) {
  copy_loop(run.call, *static_cast<const StridedLoop*>(run.state), run.outputs[0].as<T>(),
            run.inputs[0].as<const T>());
}

// --- Pad -----------------------------------------------------------------------------------------
struct PadShape {
  int rank = 0;
  PadMode mode = PadMode::kConstant;
  std::uint32_t elements = 1;  // of the output
  Divisor output[kMaxRank];
  std::int64_t input[kMaxRank] = {};
  std::int64_t before[kMaxRank] = {};
};

// Where element i of an axis comes from, i counted from the first element of the input (negative
// before it); -1: from the pad value.
__device__ std::int64_t padded_source(PadMode mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return i < 0 ? 0 : size - 1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

// value: on the device; null: zero.
template <class T>
__global__ void __launch_bounds__(kPackThreads)
    pad_elements(PadShape shape, const T* x, const T* value, T* y) {
  const std::uint32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= shape.elements) return;
  std::uint32_t number = element;
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  bool inside = true;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    const std::uint32_t next = shape.output[axis].divide(number);
    const std::int64_t index = number - next * shape.output[axis].divisor;
    const std::int64_t source =
        padded_source(shape.mode, index - shape.before[axis], shape.input[axis]);
    inside = inside && source >= 0;
    offset += source * stride;
    stride *= shape.input[axis];
    number = next;
  }
  const T outside = value == nullptr ? T{} : *value;
  y[element] = inside ? x[offset] : outside;
}

template <class T>
void pad(const RunArgs& run) {
  const auto& params = std::get<PadParams>(run.params);
  const Shape& input = run.inputs[0].shape();
  const Shape& output = run.outputs[0].shape();
  if (output.elements() == 0) return;
  PadShape shape;
  shape.rank = input.rank;
  shape.mode = params.mode;
  shape.elements = static_cast<std::uint32_t>(output.elements());
  for (int axis = 0; axis < input.rank; ++axis) {
    shape.output[axis] = Divisor(static_cast<std::uint32_t>(output[axis]));
    shape.input[axis] = input[axis];
    shape.before[axis] = params.before[static_cast<std::size_t>(axis)];
  }
  const bool given = run.inputs.size() > 2 && run.inputs[2].present;
  launch(run.call, {.blocks = blocks_for(output.elements()), .threads = kPackThreads},
         pad_elements<T>, shape, run.inputs[0].as<const T>(),
         given ? run.inputs[2].as<const T>() : nullptr, run.outputs[0].as<T>());
}

Support supports_pad(const PrepareArgs& args) {
  return supported_if(args.outputs[0].elements() < kMaxItems,
                      "on CUDA a padded tensor has less than 2^31 elements");
}

void run_slice(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { slice<Pointee<decltype(type)>>(run); });
}

void run_slice_grad(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype,
             [&](auto* type) { slice_grad<Pointee<decltype(type)>>(run); });
}

void run_expand(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { expand<Pointee<decltype(type)>>(run); });
}

void run_pad(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) { pad<Pointee<decltype(type)>>(run); });
}

}  // namespace

void add_regions(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("Slice", dtype, {.name = "slice.cuda", .prepare = prepare_slice, .run = run_slice});
    table.add("SliceGrad", dtype,
              {.name = "slice_grad.cuda", .prepare = prepare_slice_grad, .run = run_slice_grad});
    table.add("Expand", dtype,
              {.name = "expand.cuda", .prepare = prepare_expand, .run = run_expand});
    table.add("Pad", dtype, {.name = "pad.cuda", .supports = supports_pad, .run = run_pad});
  }
}

}  // namespace trainscope::cuda
