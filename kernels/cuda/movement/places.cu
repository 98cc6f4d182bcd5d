// Indices into a tensor as numbers of its elements or slices.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "kernels/api/movement_layout.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// The place an index means: negative ones count from the end; -1 when it is outside.
__device__ std::int64_t resolved(std::int64_t index, std::int64_t size) {
  const std::int64_t place = index < 0 ? index + size : index;
  return place >= 0 && place < size ? place : -1;
}

Support supports_places(const PrepareArgs& args) {
  if (args.inputs[0].elements() >= kMaxItems)
    return {.why_not = "on CUDA indices are less than 2^31"};
  return supported_if(args.inputs[1].data != nullptr || args.inputs[1].elements() == 0,
                      "on CUDA the shape that indices point into must be known");
}

// --- ElementIndex(indices, shape) ----------------------------------------------------------------

struct ElementPlaces {
  StridedPlaces places;
  std::int64_t size = 0;
  std::int64_t step = 0;
  std::int64_t outside = 0;
};

template <class I>
__global__ void __launch_bounds__(kPackThreads)
    find_elements(ElementPlaces plan, const I* indices, std::int64_t* y) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= plan.places.items) return;
  std::int64_t at[2];
  plan.places.find(i, at);
  const std::int64_t place = resolved(indices[at[0]], plan.size);
  y[at[0]] = place < 0 ? plan.outside : at[1] + place * plan.step;
}

template <class I>
void run_element_index(const RunArgs& run) {
  const auto& plan = *static_cast<const ElementLayout*>(run.state);
  ElementPlaces places;
  places.places = StridedPlaces(plan.loop, 1);
  places.size = plan.size;
  places.step = plan.step;
  places.outside = plan.outside;
  launch(run.call, {.blocks = blocks_for(plan.loop.elements), .threads = kPackThreads},
         find_elements<I>, places, run.inputs[0].as<const I>(), run.outputs[0].as<std::int64_t>());
}

// --- SliceIndex(indices, shape) ------------------------------------------------------------------

// AxisParams::axis is the number of leading axes that the indices share with the tensor.
struct SlicePlan {
  std::int64_t sizes[kMaxRank] = {};  // of the axes that a tuple points into
  int length = 0;                     // of a tuple
  std::int64_t tuples = 0;
  std::int64_t per_batch = 1;
  std::int64_t slices = 1;
};

Prepared prepare_slice_index(const PrepareArgs& args) {
  const int batch_axes = std::get<AxisParams>(args.params).axis;
  const Shape data = indexed_shape(args.inputs[1]);
  const Shape& shape = args.inputs[0].shape();
  auto plan = std::make_shared<SlicePlan>();
  plan->length = static_cast<int>(shape[shape.rank - 1]);
  plan->tuples = args.outputs[0].elements();
  std::int64_t batches = 1;
  for (int axis = 0; axis < batch_axes; ++axis) batches *= shape[axis];
  plan->slices = batches;
  for (int k = 0; k < plan->length; ++k) {
    plan->sizes[k] = data[batch_axes + k];
    plan->slices *= plan->sizes[k];
  }
  if (batches > 0) plan->per_batch = std::max<std::int64_t>(1, plan->tuples / batches);
  return {.workspace_bytes = 0, .state = plan};
}

template <class I>
__global__ void __launch_bounds__(kPackThreads)
    find_slices(const __grid_constant__ SlicePlan plan, const I* indices, std::int64_t* y) {
  const std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (n >= plan.tuples) return;
  std::int64_t slice = n / plan.per_batch;
  for (int k = 0; k < plan.length && slice != plan.slices; ++k) {
    const std::int64_t place = resolved(indices[n * plan.length + k], plan.sizes[k]);
    slice = place < 0 ? plan.slices : slice * plan.sizes[k] + place;
  }
  y[n] = slice;
}

template <class I>
void run_slice_index(const RunArgs& run) {
  const auto& plan = *static_cast<const SlicePlan*>(run.state);
  launch(run.call, {.blocks = blocks_for(plan.tuples), .threads = kPackThreads}, find_slices<I>,
         plan, run.inputs[0].as<const I>(), run.outputs[0].as<std::int64_t>());
}

}  // namespace

void add_places(KernelTable& table) {
  for_types<std::int32_t, std::int64_t>([&](auto* type) {
    using I = Pointee<decltype(type)>;
    table.add("ElementIndex", kDTypeOf<I>,
              {.name = "element_index.cuda",
               .supports = supports_places,
               .prepare = prepare_element_index,
               .run = run_element_index<I>});
    table.add("SliceIndex", kDTypeOf<I>,
              {.name = "slice_index.cuda",
               .supports = supports_places,
               .prepare = prepare_slice_index,
               .run = run_slice_index<I>});
  });
}

}  // namespace trainscope::cuda
