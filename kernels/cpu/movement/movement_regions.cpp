// Tensors cut out of, set into or repeated to other shapes.
#include <algorithm>
#include <memory>

#include "kernels/cpu/movement/movement.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {
namespace {

// --- Slice and SliceGrad: a dense tensor and a region of a larger one ----------------------------
struct RegionPlan {
  StridedLoop loop{.operands = 2};  // dense tensor, larger tensor
  std::int64_t offset = 0;          // of the region in the larger tensor
};

Prepared region_plan(const Shape& dense, const Shape& larger, const SliceParams& params) {
  auto plan = std::make_shared<RegionPlan>();
  const bool empty = dense.elements() == 0;  // begins nowhere, whatever a model says
  const Strides dense_stride = dense_strides(dense);
  const Strides larger_stride = dense_strides(larger);
  for (std::size_t a = 0; a < static_cast<std::size_t>(dense.rank); ++a) {
    if (!empty) plan->offset += params.start[a] * larger_stride[a];
    // A single element takes no step.
    const std::int64_t step = !empty && dense.dims[a] > 1 ? params.step[a] : 0;
    plan->loop.add_axis(dense.dims[a], {dense_stride[a], step * larger_stride[a]});
  }
  return {.workspace_bytes = 0, .state = plan};
}

Prepared prepare_slice(const PrepareArgs& args) {
  return region_plan(args.outputs[0].shape(), args.inputs[0].shape(),
                     std::get<SliceParams>(args.params));
}

Prepared prepare_slice_grad(const PrepareArgs& args) {
  return region_plan(args.inputs[0].shape(), args.outputs[0].shape(),
                     std::get<SliceParams>(args.params));
}

template <class T>
void slice(const RunArgs& run) {
  if (run.outputs[0].elements() == 0) return;
  const auto& plan = *static_cast<const RegionPlan*>(run.state);
  const T* x = run.inputs[0].as<const T>() + plan.offset;
  T* y = run.outputs[0].as<T>();
  if (x == y) return;  // placed where it is: only a region in one piece is
  const std::int64_t stride = plan.loop.row_stride(1);
  parallel_for(run.threads, plan.loop.elements, kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(plan.loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   copy_row(x + at[1], stride, y + at[0], 1, count);
                 });
               });
}

template <class T>
void slice_grad(const RunArgs& run) {
  if (run.outputs[0].elements() == 0) return;
  const auto& plan = *static_cast<const RegionPlan*>(run.state);
  const T* dy = run.inputs[0].as<const T>();
  T* dx = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
               [=](std::int64_t begin, std::int64_t end) { std::fill(dx + begin, dx + end, T{}); });
  const std::int64_t stride = plan.loop.row_stride(1);
  T* region = dx + plan.offset;
  parallel_for(run.threads, plan.loop.elements, kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(plan.loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   copy_row(dy + at[0], 1, region + at[1], stride, count);
                 });
               });
}

// --- Expand --------------------------------------------------------------------------------------
Prepared prepare_expand(const PrepareArgs& args) {
  return {.workspace_bytes = 0,
          .state = std::make_shared<const StridedLoop>(
              broadcast_loop(args.outputs[0].shape(), args.inputs.first(1)))};
}

template <class T>
void expand(const RunArgs& run) {
  const auto& loop = *static_cast<const StridedLoop*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  const std::int64_t stride = loop.row_stride(1);
  parallel_for(run.threads, loop.elements, kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   copy_row(x + at[1], stride, y + at[0], 1, count);
                 });
               });
}

// --- Pad -----------------------------------------------------------------------------------------
// Where element i of an axis comes from, i counted from the first element of the input (negative
// before it); -1: from the pad value.
std::int64_t padded_source(PadMode mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return i < 0 ? 0 : size - 1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

// Offset of the input row that output row `number` is made of; -1: of none.
std::int64_t padded_row(const PadParams& pad, const Shape& input, const Shape& output,
                        std::int64_t number) {
  std::int64_t offset = 0;
  std::int64_t stride = input[input.rank - 1];
  for (int axis = input.rank - 2; axis >= 0; --axis) {
    const std::int64_t i = number % output[axis] - pad.before[static_cast<std::size_t>(axis)];
    const std::int64_t source = padded_source(pad.mode, i, input[axis]);
    if (source < 0) return -1;
    offset += source * stride;
    stride *= input[axis];
    number /= output[axis];
  }
  return offset;
}

template <class T>
struct PadRow {
  PadMode mode;
  std::int64_t before;  // elements in front of the input row
  std::int64_t size;    // of the input row
  std::int64_t width;   // of the output row
  T value;

  void operator()(const T* x, T* y) const {
    const std::int64_t begin = std::clamp<std::int64_t>(before, 0, width);
    const std::int64_t end = std::clamp<std::int64_t>(before + size, begin, width);
    for (std::int64_t i = 0; i < begin; ++i) y[i] = outside(x, i);
    std::copy(x + (begin - before), x + (end - before), y + begin);
    for (std::int64_t i = end; i < width; ++i) y[i] = outside(x, i);
  }

  T outside(const T* x, std::int64_t i) const {
    const std::int64_t source = padded_source(mode, i - before, size);
    return source < 0 ? value : x[source];
  }
};

template <class T>
void pad(const RunArgs& run) {
  const auto& params = std::get<PadParams>(run.params);
  const Shape& input = run.inputs[0].shape();
  const Shape& output = run.outputs[0].shape();
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  if (run.outputs[0].elements() == 0) return;
  if (input.rank == 0) {
    *y = *x;
    return;
  }
  const bool given = run.inputs.size() > 2 && run.inputs[2].present;
  const PadRow<T> row{.mode = params.mode,
                      .before = params.before[static_cast<std::size_t>(input.rank - 1)],
                      .size = input[input.rank - 1],
                      .width = output[output.rank - 1],
                      .value = given ? *run.inputs[2].as<const T>() : T{}};
  parallel_for(run.threads, output.elements() / row.width, row_grain(row.width),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t number = begin; number < end; ++number) {
                   const std::int64_t from = padded_row(params, input, output, number);
                   T* to = y + number * row.width;
                   if (from < 0) {
                     std::fill_n(to, row.width, row.value);
                   } else {
                     row(x + from, to);
                   }
                 }
               });
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
  for (DType dtype : kAllDTypes) {
    table.add("Slice", dtype, {.name = "slice", .prepare = prepare_slice, .run = run_slice});
    table.add("SliceGrad", dtype,
              {.name = "slice_grad", .prepare = prepare_slice_grad, .run = run_slice_grad});
    table.add("Expand", dtype, {.name = "expand", .prepare = prepare_expand, .run = run_expand});
    table.add("Pad", dtype, {.name = "pad", .run = run_pad});
  }
}

}  // namespace trainscope::cpu
