// Kernels that apply a function to each element, of tensors of one shape or broadcast ones.
//
// A function is a struct with a __device__ operator() on the types that elements are computed with
// (float for the types of two bytes); it may hold parameters. Every thread does a pack of four
// elements, or eight where all are of two bytes or less, along the last axis where the operands
// allow (rows of several axes have whole packs), else one: each operand is read once and the result
// written once, 16 bytes an instruction for f32 and the types of two bytes. An input may be
// the output's memory, element for element: a thread reads its pack before it writes it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {

// How a strided loop is divided among threads.
struct MapPlan {
  StridedPlaces places;
  std::int64_t elements = 0;
  bool wide = false;                 // an item is a pack, else an element
  bool repeated[kMaxOperands] = {};  // one element for the whole last axis; of packs only
};

template <int kWidth, class F, class Y, class... X>
__device__ void map_pack(const F& f, Y* y, const Pack<X, kWidth>&... x) {
  Pack<Y, kWidth> result;
  for (int i = 0; i < kWidth; ++i) {
    result.values[i] = static_cast<Y>(f(computed(x.values[i])...));
  }
  *reinterpret_cast<Pack<Y, kWidth>*>(y) = result;
}

template <class F, class Y, std::size_t... kInput, class... X>
__device__ void map_item(const MapPlan& plan, std::uint32_t item, const F& f,
                         std::index_sequence<kInput...>, Y* y, const X*... x) {
  constexpr int kWidth = kPackOf<Y, X...>;
  std::int64_t at[1 + sizeof...(X)];
  plan.places.find(item, at);
  if (!plan.wide) {
    y[at[0]] = static_cast<Y>(f(computed(x[at[1 + kInput]])...));
    return;
  }
  const std::int64_t left = plan.elements - std::int64_t{item} * kWidth;
  if (left >= kWidth) {
    map_pack<kWidth, F, Y, X...>(
        f, y + at[0], load_pack<X, kWidth>(x + at[1 + kInput], plan.repeated[1 + kInput])...);
    return;
  }
  for (int i = 0; i < left; ++i) {
    y[at[0] + i] =
        static_cast<Y>(f(computed(x[at[1 + kInput] + (plan.repeated[1 + kInput] ? 0 : i)])...));
  }
}

template <class F, class Y, class... X>
__global__ void __launch_bounds__(kPackThreads)
    map_elements_kernel(MapPlan plan, F f, Y* y, const X*... x) {
  const std::uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= plan.places.items) return;
  map_item(plan, item, f, std::index_sequence_for<X...>{}, y, x...);
}

// Whether every pack of the loop's last axis begins where packs may, in this operand.
inline bool packs_fit(const StridedLoop& loop, int operand, int width) {
  const Strides& strides = loop.strides[operand];
  if (loop.row_stride(operand) == 0) return operand > 0;
  if (loop.row_stride(operand) != 1) return false;
  bool fit = loop.rank <= 1 || loop.sizes[loop.rank - 1] % width == 0;
  for (int axis = 0; axis + 1 < loop.rank; ++axis) fit = fit && strides[axis] % width == 0;
  return fit;
}

// y = f(x...) over a loop whose operand 0 is y. `y` and `x` are where its operands begin.
template <class F, class Y, class... X>
void map_loop(const CallContext& call, const StridedLoop& loop, const F& f, Y* y, const X*... x) {
  constexpr int kWidth = kPackOf<Y, X...>;
  if (loop.elements == 0) return;
  MapPlan plan;
  plan.elements = loop.elements;
  bool aligned = takes_packs<Y, kWidth>(y);
  ((aligned = aligned && takes_packs<X, kWidth>(x)), ...);
  plan.wide = aligned && loop.rank > 0;
  for (int k = 0; k < loop.operands; ++k) {
    plan.wide = plan.wide && packs_fit(loop, k, kWidth);
    plan.repeated[k] = loop.row_stride(k) == 0;
  }
  const std::int64_t items = plan.wide ? (loop.elements + kWidth - 1) / kWidth : loop.elements;
  if (items >= kMaxItems) {
    return call.fail(DeviceStatus::Code::kBadInput,
                     "a tensor of " + std::to_string(loop.elements) +
                         " elements is too large for one elementwise call on CUDA");
  }
  plan.places = StridedPlaces(loop, plan.wide ? kWidth : 1);
  launch(call, {.blocks = blocks_for(items), .threads = kPackThreads},
         map_elements_kernel<F, Y, X...>, plan, f, y, x...);
}

// The loop of tensors that are all of one shape.
inline StridedLoop flat_loop(std::int64_t elements, int operands) {
  StridedLoop loop{.operands = operands};
  loop.add_axis(elements, {1, 1, 1, 1});
  return loop;
}

// y = f(x...) over the loop: the first output and the first inputs of a call.
template <class Y, class... X, class F, std::size_t... kInput>
void map_call(const RunArgs& run, const StridedLoop& loop, const F& f,
              std::index_sequence<kInput...>) {
  map_loop(run.call, loop, f, run.outputs[0].as<Y>(), run.inputs[kInput].as<const X>()...);
}

// y[i] = f(x[i]...) of tensors of one shape.
template <class Y, class... X, class F>
void map_elements(const RunArgs& run, const F& f) {
  const StridedLoop loop = flat_loop(run.outputs[0].elements(), 1 + int{sizeof...(X)});
  map_call<Y, X...>(run, loop, f, std::index_sequence_for<X...>{});
}

inline Prepared prepare_broadcast(const PrepareArgs& args) {
  return {.workspace_bytes = 0,
          .state = std::make_shared<const StridedLoop>(
              broadcast_loop(args.outputs[0].shape(), args.inputs))};
}

// The same with numpy broadcasting, over the loop of prepare_broadcast().
template <class Y, class... X, class F>
void map_broadcast(const RunArgs& run, const F& f) {
  map_call<Y, X...>(run, *static_cast<const StridedLoop*>(run.state), f,
                    std::index_sequence_for<X...>{});
}

// Kernels of functions without parameters: T -> T, and pairs of T -> Y with and without
// broadcasting.
template <class T, class F>
void run_unary(const RunArgs& run) {
  map_elements<T, T>(run, F{});
}
template <class T, class F>
void run_pairwise(const RunArgs& run) {
  map_elements<T, T, T>(run, F{});
}
template <class T, class Y, class F>
void run_binary(const RunArgs& run) {
  map_broadcast<Y, T, T>(run, F{});
}

}  // namespace trainscope::cuda
