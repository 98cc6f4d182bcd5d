// What a call of the gradient of attention works on, and what is computed before it: for each query
// the sum of dy * y over its head.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/cuda/attention/attention_call.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {

// Inputs dy, y and the statistics come before those of Attention.
inline constexpr std::size_t kForwardInputs = 3;

template <typename T>
struct GradientCall {
  AttentionSizes sizes;
  HeadTensors<const T> x;
  HeadTensors<T> dx;  // dq may be q or dy
  HeadTensor<const T> dy;
  HeadTensor<const T> y;
  const float* statistics;  // [batch, heads, tokens, 2]
  float* shifts;            // [batch, heads, tokens]: sums of dy * y
  int tiles;                // of queries, or of keys
  bool wide;                // rows may be copied by 16 bytes: for kernels on tensor cores
};

// shifts[b, head, query] = sum of dy * y over the head. A warp a row. Bytes: dy and y read once, 4
// a row written. FLOPs: 2 an element.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) attention_shifts(const GradientCall<T> a) {
  const AttentionSizes& sizes = a.sizes;
  const std::int64_t rows = sizes.row(sizes.batch, 0, 0);
  for (std::int64_t row = WarpTeam::first(); row < rows; row += WarpTeam::teams()) {
    const std::int64_t query = row % sizes.tokens;
    const auto item = static_cast<int>(row / sizes.tokens);
    const int head = item % sizes.heads;
    const int b = item / sizes.heads;
    const T* dy = a.dy.head(b, head, sizes.width).from(query).data;
    const T* y = a.y.head(b, head, sizes.width).from(query).data;
    float sum = 0.0F;
    for (int d = WarpTeam::rank(); d < sizes.width; d += kWarp) {
      sum = std::fma(static_cast<float>(dy[d]), static_cast<float>(y[d]), sum);
    }
    sum = warp_sum(sum);
    if (WarpTeam::rank() == 0) a.shifts[row] = sum;
  }
}

inline Prepared prepare_gradient(const PrepareArgs& args) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs.subspan(kForwardInputs));
  return {.workspace_bytes = static_cast<std::size_t>(sizes.rows()) * sizeof(float),
          .state = nullptr};
}

// The call, whose shifts are computed.
template <typename T>
GradientCall<T> gradient_call(const RunArgs& args) {
  const auto forward = args.inputs.subspan(kForwardInputs);
  const auto& params = std::get<AttentionParams>(args.params);
  const GradientCall<T> call{.sizes = attention_sizes(args.params, forward),
                             .x = head_tensors<const T>(params, forward),
                             .dx = head_tensors<T>(params, args.outputs),
                             .dy = head_tensor<const T>(args.inputs[0], 0),
                             .y = head_tensor<const T>(args.inputs[1], 0),
                             .statistics = args.inputs[2].as<const float>(),
                             .shifts = static_cast<float*>(args.workspace),
                             .tiles = 0,
                             .wide = false};
  launch(args.call,
         {.blocks = team_blocks(call.sizes.rows(), kTeamThreads / kWarp),
          .threads = dim3(kTeamThreads)},
         attention_shifts<T>, call);
  return call;
}

// The kernels of dk and dv, and of dq, each where somebody asks for them.
template <typename T>
void launch_gradients(const CallContext& context, const GradientCall<T>& call, const Grid& grid,
                      void (*keys)(GradientCall<T>), void (*queries)(GradientCall<T>)) {
  const AttentionSizes& sizes = call.sizes;
  if (call.dx.k.data != nullptr || call.dx.v.data != nullptr) {
    launch_tiles(context, call, sizes.keys, kTile, sizes.kv_heads, grid, keys);
  }
  if (call.dx.q.data == nullptr) return;
  launch_tiles(context, call, sizes.tokens, kTile, sizes.heads, grid, queries);
}

}  // namespace trainscope::cuda
