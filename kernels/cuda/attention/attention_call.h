// What a call of attention or of its gradient works on: heads in tensors, sizes, forms of kernels.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/attention/dropout_mask.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {

// Elements of a head, and keys, in a tile.
inline constexpr int kTile = 64;
inline constexpr std::int64_t kMostHeadWidth = 4 * kTile;  // sums of whole heads are in registers

// Rows of one head: token i at data + i * row.
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t row;

  __device__ HeadRows from(std::int64_t i) const { return {data + i * row, row}; }
};

// Heads in a tensor [batch, tokens, heads, width], or in some of its heads.
template <typename T>
struct HeadTensor {
  T* data = nullptr;       // null: left out
  std::int64_t batch = 0;  // from one batch entry to the next
  std::int64_t row = 0;    // from one token to the next

  __device__ HeadRows<T> head(std::int64_t b, std::int64_t number, std::int64_t width) const {
    return {data + b * batch + number * width, row};
  }
};

template <typename T>
HeadTensor<T> head_tensor(const TensorView& view, std::int64_t first_head) {
  const Shape& shape = view.shape();
  const std::int64_t row = shape[2] * shape[3];
  return {.data = view.as<T>() + first_head * shape[3], .batch = shape[1] * row, .row = row};
}

// q, k and v, whether they are in tensors of their own or side by side.
template <typename T>
struct HeadTensors {
  HeadTensor<T> q;
  HeadTensor<T> k;
  HeadTensor<T> v;
};

template <typename T>
HeadTensors<T> head_tensors(const AttentionParams& params, std::span<const TensorView> tensors) {
  if (params.packed) {
    return {.q = head_tensor<T>(tensors[0], 0),
            .k = head_tensor<T>(tensors[0], params.heads),
            .v = head_tensor<T>(tensors[0], params.heads + params.kv_heads)};
  }
  const auto at = [&](std::size_t i) {
    return has_view(tensors, i) ? head_tensor<T>(tensors[i], 0) : HeadTensor<T>{};
  };
  return {.q = at(0), .k = at(1), .v = at(2)};
}

// Sizes of a call, and what is added to its scores and what its weights drop.
struct AttentionSizes {
  int batch = 0;
  int tokens = 0;
  int keys = 0;
  int heads = 0;
  int kv_heads = 0;
  int width = 0;  // of a head
  bool causal = false;
  float scale = 1.0F;
  const float* bias = nullptr;        // broadcast to [batch, heads, tokens, keys]
  std::int64_t bias_strides[4] = {};  // 0 where it is broadcast
  DropoutMask mask = {};

  // Number of a query among all [batch, heads, tokens].
  __host__ __device__ std::int64_t row(int b, int head, int query) const {
    return (static_cast<std::int64_t>(b) * heads + head) * tokens + query;
  }
  std::int64_t rows() const { return row(batch, 0, 0); }
};

// `inputs` begin with q.
AttentionSizes attention_sizes(const Params& params, std::span<const TensorView> inputs);
Support supports_attention(const Params& params, std::span<const TensorView> inputs);
// ... on tensor cores, of elements of two bytes.
Support supports_tensor_attention(const Params& params, std::span<const TensorView> inputs);

__host__ __device__ inline int tiles_of(int rows, int rows_of_tile) {
  return rows / rows_of_tile + (rows % rows_of_tile == 0 ? 0 : 1);
}

template <typename T>
struct AttentionCall {
  AttentionSizes sizes;
  HeadTensors<const T> x;
  HeadTensor<T> y;    // may be q
  float* statistics;  // [batch, heads, tokens, 2], or null
  int tiles;          // of queries
  bool wide;          // rows may be copied by 16 bytes: for kernels on tensor cores
};
template <typename T>
AttentionCall<T> attention_call(const RunArgs& args) {
  const auto& params = std::get<AttentionParams>(args.params);
  return {.sizes = attention_sizes(args.params, args.inputs),
          .x = head_tensors<const T>(params, args.inputs),
          .y = head_tensor<T>(args.outputs[0], 0),
          .statistics = data_or_null<float>(args.outputs, 1),
          .tiles = 0,
          .wide = false};
}

// Launches the kernel, a block for each tile of a head's rows: queries or keys.
template <class Call>
void launch_tiles(const CallContext& context, Call call, int rows, int rows_of_tile, int heads,
                  Grid grid, void (*kernel)(Call)) {
  call.tiles = tiles_of(rows, rows_of_tile);
  grid.blocks = dim3(static_cast<unsigned>(call.tiles * heads * call.sizes.batch));
  launch(context, grid, kernel, call);
}

// What a kernel is compiled for: heads of up to 64 * kPanels elements, with dropout or without.
template <int kPanelsOfForm, bool kDropsOfForm>
struct AttentionForm {
  static constexpr int kPanels = kPanelsOfForm;
  static constexpr bool kDrops = kDropsOfForm;
};

// Calls run(form) with the smallest form that takes the call, of heads of up to 64 * kMostPanels
// elements.
template <int kMostPanels = 4, class Run>
void with_form(const AttentionSizes& sizes, Run run) {
  const auto with_panels = [&]<int kPanels>(AttentionForm<kPanels, false> plain) {
    if (sizes.mask.threshold == 0) return run(plain);
    run(AttentionForm<kPanels, true>{});
  };
  if (sizes.width <= kTile) return with_panels(AttentionForm<1, false>{});
  if constexpr (kMostPanels > 2) {
    if (sizes.width > 2 * kTile) return with_panels(AttentionForm<4, false>{});
  }
  with_panels(AttentionForm<2, false>{});
}

}  // namespace trainscope::cuda
