// Conv, ConvGradInput and ConvGradWeight in f32 as implicit GEMMs: see conv_tiles.h. Deterministic:
// sums are formed in the order of the depth, and shares of it are added up in theirs.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/conv/conv_tiles.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// x [N, C, in...], w [M, C / group, kernel...], y [N, M, out...]
struct ConvGeometry {
  DeviceWindow window;
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;   // C
  std::int64_t out_channels = 0;  // M
  std::int64_t groups = 1;

  __host__ __device__ std::int64_t in_per_group() const { return in_channels / groups; }
  __host__ __device__ std::int64_t out_per_group() const { return out_channels / groups; }
  // Weights of one out channel.
  __host__ __device__ std::int64_t weights() const { return in_per_group() * window.taps(); }
};

ConvGeometry conv_geometry(const Params& of, const Shape& x, const Shape& y) {
  const auto& params = std::get<ConvParams>(of);
  return {.window = device_window(params.window, x, y),
          .batch = x[0],
          .in_channels = x[1],
          .out_channels = y[1],
          .groups = params.group};
}

// Where the first element of window `element` lies, before the padding is taken off.
__device__ PlanePlace window_start(const DeviceWindow& w, int element) {
  PlanePlace place = plane_place(w.out, element);
  for (int a = 0; a < kMaxSpatialRank; ++a) place.axis[a] = place.axis[a] * w.stride[a] - w.pad[a];
  return place;
}

// How far element `tap` of a window lies from its first one.
__device__ PlanePlace tap_distance(const DeviceWindow& w, int tap) {
  PlanePlace place = plane_place(w.kernel, tap);
  for (int a = 0; a < kMaxSpatialRank; ++a) place.axis[a] *= w.dilation[a];
  return place;
}

__device__ ConvPlace place_at(std::int64_t first, std::int64_t second, const PlanePlace& place) {
  return {first, second, {place.axis[0], place.axis[1], place.axis[2]}, true};
}

// The element of x at `start` plus `tap`, 0 in the padding; the offsets are those of its plane.
template <typename T>
__device__ float element_of_x(const DeviceWindow& w, const T* x, const ConvPlace& start,
                              const ConvPlace& tap) {
  int place[kMaxSpatialRank];
  for (int a = 0; a < kMaxSpatialRank; ++a) {
    place[a] = start.axis[a] + tap.axis[a];
    if (place[a] < 0 || place[a] >= w.in[a]) return 0.0F;
  }
  const std::int64_t at = (static_cast<std::int64_t>(place[0]) * w.in[1] + place[1]) * w.in[2];
  return static_cast<float>(x[start.first + tap.first + at + place[2]]);
}

// --- Shares of the depth -------------------------------------------------------------------------

constexpr std::int64_t kWantedBlocks = 264;  // of a launch: two for each multiprocessor

// Results of shares, [shares, elements], which a second kernel adds up; null: of one share, which
// writes the result itself.
struct SharesOfResult {
  float* sums = nullptr;
  std::int64_t elements = 0;

  // False where there are none.
  __device__ bool keep(const ConvTileAt& at, std::int64_t i, float sum) const {
    if (sums == nullptr) return false;
    sums[at.share * elements + i] = sum;
    return true;
  }
};

SharesOfResult shares_of_result(const RunArgs& args, const ConvTiling& tiling) {
  if (tiling.shares == 1) return {};
  return {static_cast<float*>(args.workspace), args.outputs[0].elements()};
}

// result [N, channels, plane] = the sum of the shares, in order and in double, plus the channel's
// bias. A thread an element. Bytes: shares read and the result written once. FLOPs: 1 an element
// and share.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    add_shares(const SharesOfResult shares, std::int64_t count, const T* bias,
               std::int64_t channels, std::int64_t plane, T* result) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= shares.elements) return;
  double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[i / plane % channels]);
  for (std::int64_t share = 0; share < count; ++share) {
    sum += static_cast<double>(shares.sums[share * shares.elements + i]);
  }
  result[i] = static_cast<T>(sum);
}

template <typename T>
void launch_add_shares(const RunArgs& args, const SharesOfResult& shares, std::int64_t count,
                       const T* bias) {
  const TensorView& result = args.outputs[0];
  const std::int64_t channels = result.shape()[1];
  const std::int64_t rows = result.shape()[0] * channels;
  launch(args.call,
         {.blocks = team_blocks(shares.elements, kTeamThreads), .threads = dim3(kTeamThreads)},
         add_shares<T>, shares, count, bias, channels,
         rows == 0 ? std::int64_t{1} : shares.elements / rows, result.as<T>());
}

// --- Conv(x, w [, bias]) -> y --------------------------------------------------------------------
// Rows: out channels. Columns: windows of all examples. Depth: in channels and taps.

template <typename T>
struct ConvForward {
  static constexpr bool kRightByDepth = false;
  ConvGeometry g;
  const T* x;
  const T* w;
  const T* bias;  // [M], or null
  T* y;
  SharesOfResult shares;

  // first: of the group's channel 0 in x; second: of its out channel 0 in y.
  __device__ ConvPlace column_place(std::int64_t group, std::int64_t column) const {
    const int windows = g.window.out_elements();
    const std::int64_t n = column / windows;
    const auto element = static_cast<int>(column % windows);
    const std::int64_t in = n * g.in_channels + group * g.in_per_group();
    const std::int64_t out = n * g.out_channels + group * g.out_per_group();
    return place_at(in * g.window.in_elements(), out * windows + element,
                    window_start(g.window, element));
  }
  // first: of the channel's plane.
  __device__ ConvPlace depth_place(std::int64_t /*group*/, std::int64_t depth) const {
    const int taps = g.window.taps();
    return place_at(depth / taps * g.window.in_elements(), 0,
                    tap_distance(g.window, static_cast<int>(depth % taps)));
  }
  __device__ float left(std::int64_t group, std::int64_t row, std::int64_t depth,
                        const ConvPlace& /*at*/) const {
    return static_cast<float>(w[(group * g.out_per_group() + row) * g.weights() + depth]);
  }
  __device__ float right(const ConvPlace& depth, const ConvPlace& column) const {
    return element_of_x(g.window, x, column, depth);
  }
  __device__ void store(const ConvTileAt& at, std::int64_t row, std::int64_t /*column*/,
                        const ConvPlace& place, float sum) const {
    const std::int64_t i = place.second + row * g.window.out_elements();
    if (shares.keep(at, i, sum)) return;
    const float added =
        bias == nullptr ? 0.0F : static_cast<float>(bias[at.group * g.out_per_group() + row]);
    y[i] = static_cast<T>(sum + added);
  }
};

ConvTiling forward_tiling(const ConvGeometry& g) {
  ConvTiling tiling{.rows = g.out_per_group(),
                    .columns = g.batch * g.window.out_elements(),
                    .depth = g.weights(),
                    .groups = g.groups};
  tiling.shares = conv_shares(tiling, kWantedBlocks);
  return tiling;
}

template <typename T>
void run_conv(const RunArgs& args) {
  const ConvGeometry g =
      conv_geometry(args.params, args.inputs[0].shape(), args.outputs[0].shape());
  const ConvTiling tiling = forward_tiling(g);
  const ConvForward<T> form{.g = g,
                            .x = args.inputs[0].as<const T>(),
                            .w = args.inputs[1].as<const T>(),
                            .bias = data_or_null<const T>(args.inputs, 2),
                            .y = args.outputs[0].as<T>(),
                            .shares = shares_of_result(args, tiling)};
  launch_conv(args.call, form, tiling);
  if (tiling.shares > 1) launch_add_shares<T>(args, form.shares, tiling.shares, form.bias);
}

// --- ConvGradInput(dy, w) -> dx ------------------------------------------------------------------
// Rows: in channels. Columns: elements of planes of all examples. Depth: out channels and taps.

template <typename T>
struct ConvGradInput {
  static constexpr bool kRightByDepth = false;
  ConvGeometry g;
  const T* dy;
  const T* w;
  T* dx;
  SharesOfResult shares;

  // first: of the group's out channel 0 in dy; second: of its channel 0 in dx.
  __device__ ConvPlace column_place(std::int64_t group, std::int64_t column) const {
    const int elements = g.window.in_elements();
    const std::int64_t n = column / elements;
    const auto element = static_cast<int>(column % elements);
    const std::int64_t in = n * g.in_channels + group * g.in_per_group();
    const std::int64_t out = n * g.out_channels + group * g.out_per_group();
    PlanePlace place = plane_place(g.window.in, element);
    for (int a = 0; a < kMaxSpatialRank; ++a) place.axis[a] += g.window.pad[a];
    return place_at(out * g.window.out_elements(), in * elements + element, place);
  }
  // first: of the out channel's plane; second: of its weight of in channel 0 and this tap.
  __device__ ConvPlace depth_place(std::int64_t group, std::int64_t depth) const {
    const int taps = g.window.taps();
    const std::int64_t m = depth / taps;
    const auto tap = static_cast<int>(depth % taps);
    return place_at(m * g.window.out_elements(),
                    (group * g.out_per_group() + m) * g.weights() + tap,
                    tap_distance(g.window, tap));
  }
  __device__ float left(std::int64_t /*group*/, std::int64_t row, std::int64_t /*depth*/,
                        const ConvPlace& at) const {
    return static_cast<float>(w[at.second + row * g.window.taps()]);
  }
  // The gradient of the window whose tap lies on the column's element; 0 where there is none.
  __device__ float right(const ConvPlace& depth, const ConvPlace& column) const {
    int window[kMaxSpatialRank];
    for (int a = 0; a < kMaxSpatialRank; ++a) {
      const int start = column.axis[a] - depth.axis[a];
      const int stride = g.window.stride[a];
      if (start < 0) return 0.0F;
      window[a] = stride == 1 ? start : start / stride;
      if (window[a] * stride != start || window[a] >= g.window.out[a]) return 0.0F;
    }
    const std::int64_t row = static_cast<std::int64_t>(window[0]) * g.window.out[1] + window[1];
    return static_cast<float>(dy[column.first + depth.first + row * g.window.out[2] + window[2]]);
  }
  __device__ void store(const ConvTileAt& at, std::int64_t row, std::int64_t /*column*/,
                        const ConvPlace& place, float sum) const {
    const std::int64_t i = place.second + row * g.window.in_elements();
    if (!shares.keep(at, i, sum)) dx[i] = static_cast<T>(sum);
  }
};

ConvTiling grad_input_tiling(const ConvGeometry& g) {
  ConvTiling tiling{.rows = g.in_per_group(),
                    .columns = g.batch * g.window.in_elements(),
                    .depth = g.out_per_group() * g.window.taps(),
                    .groups = g.groups};
  tiling.shares = conv_shares(tiling, kWantedBlocks);
  return tiling;
}

template <typename T>
void run_conv_grad_input(const RunArgs& args) {
  const ConvGeometry g =
      conv_geometry(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  const ConvTiling tiling = grad_input_tiling(g);
  const ConvGradInput<T> form{.g = g,
                              .dy = args.inputs[0].as<const T>(),
                              .w = args.inputs[1].as<const T>(),
                              .dx = args.outputs[0].as<T>(),
                              .shares = shares_of_result(args, tiling)};
  launch_conv(args.call, form, tiling);
  if (tiling.shares > 1) launch_add_shares<T>(args, form.shares, tiling.shares, nullptr);
}

// --- ConvGradWeight(x, dy) -> dw -----------------------------------------------------------------
// Rows: out channels. Columns: in channels and taps. Depth: windows of all examples, in shares that
// are added up by a second kernel.

template <typename T>
struct ConvGradWeight {
  static constexpr bool kRightByDepth = true;
  ConvGeometry g;
  const T* x;
  const T* dy;
  SharesOfResult shares;

  // first: of the channel's plane in a group of x.
  __device__ ConvPlace column_place(std::int64_t /*group*/, std::int64_t column) const {
    const int taps = g.window.taps();
    return place_at(column / taps * g.window.in_elements(), 0,
                    tap_distance(g.window, static_cast<int>(column % taps)));
  }
  // first: of the group's channel 0 in x; second: of its out channel 0 in dy.
  __device__ ConvPlace depth_place(std::int64_t group, std::int64_t depth) const {
    const int windows = g.window.out_elements();
    const std::int64_t n = depth / windows;
    const auto element = static_cast<int>(depth % windows);
    const std::int64_t in = n * g.in_channels + group * g.in_per_group();
    const std::int64_t out = n * g.out_channels + group * g.out_per_group();
    return place_at(in * g.window.in_elements(), out * windows + element,
                    window_start(g.window, element));
  }
  __device__ float left(std::int64_t /*group*/, std::int64_t row, std::int64_t /*depth*/,
                        const ConvPlace& at) const {
    return static_cast<float>(dy[at.second + row * g.window.out_elements()]);
  }
  __device__ float right(const ConvPlace& depth, const ConvPlace& column) const {
    return element_of_x(g.window, x, depth, column);
  }
  __device__ void store(const ConvTileAt& at, std::int64_t row, std::int64_t column,
                        const ConvPlace& /*place*/, float sum) const {
    shares.keep(at, (at.group * g.out_per_group() + row) * g.weights() + column, sum);
  }
};

ConvTiling grad_weight_tiling(const ConvGeometry& g) {
  ConvTiling tiling{.rows = g.out_per_group(),
                    .columns = g.weights(),
                    .depth = g.batch * g.window.out_elements(),
                    .groups = g.groups};
  tiling.shares = conv_shares(tiling, 2 * kWantedBlocks);
  return tiling;
}

template <typename T>
void run_conv_grad_weight(const RunArgs& args) {
  const ConvGeometry g = conv_geometry(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const ConvTiling tiling = grad_weight_tiling(g);
  const SharesOfResult shares{static_cast<float*>(args.workspace), args.outputs[0].elements()};
  launch_conv(args.call,
              ConvGradWeight<T>{.g = g,
                                .x = args.inputs[0].as<const T>(),
                                .dy = args.inputs[1].as<const T>(),
                                .shares = shares},
              tiling);
  launch_add_shares<T>(args, shares, tiling.shares, nullptr);
}

Prepared workspace_of(std::int64_t shares, const TensorView& result) {
  return {.workspace_bytes = static_cast<std::size_t>(shares * result.elements()) * sizeof(float),
          .state = nullptr};
}
Prepared prepare_conv(const PrepareArgs& args) {
  const std::int64_t shares =
      forward_tiling(conv_geometry(args.params, args.inputs[0].shape(), args.outputs[0].shape()))
          .shares;
  return workspace_of(shares > 1 ? shares : 0, args.outputs[0]);
}
Prepared prepare_conv_grad_input(const PrepareArgs& args) {
  const std::int64_t shares =
      grad_input_tiling(conv_geometry(args.params, args.outputs[0].shape(), args.inputs[0].shape()))
          .shares;
  return workspace_of(shares > 1 ? shares : 0, args.outputs[0]);
}
Prepared prepare_conv_grad_weight(const PrepareArgs& args) {
  const std::int64_t shares =
      grad_weight_tiling(conv_geometry(args.params, args.inputs[0].shape(), args.inputs[1].shape()))
          .shares;
  return workspace_of(shares, args.outputs[0]);
}

// --- The table -----------------------------------------------------------------------------------

const WindowParams& conv_window(const PrepareArgs& args) {
  return std::get<ConvParams>(args.params).window;
}
Support supports_conv(const PrepareArgs& args) {
  return supports_window(conv_window(args), args.inputs[0].shape(), args.outputs[0].shape());
}
Support supports_grad_input(const PrepareArgs& args) {
  return supports_window(conv_window(args), args.outputs[0].shape(), args.inputs[0].shape());
}
Support supports_grad_weight(const PrepareArgs& args) {
  return supports_window(conv_window(args), args.inputs[0].shape(), args.inputs[1].shape());
}

template <typename T>
void add_conv_for(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Conv", dtype,
            {.name = "conv.cuda",
             .supports = supports_conv,
             .prepare = prepare_conv,
             .run = run_conv<T>});
  table.add("ConvGradInput", dtype,
            {.name = "conv_grad_input.cuda",
             .supports = supports_grad_input,
             .prepare = prepare_conv_grad_input,
             .run = run_conv_grad_input<T>});
  table.add("ConvGradWeight", dtype,
            {.name = "conv_grad_weight.cuda",
             .supports = supports_grad_weight,
             .prepare = prepare_conv_grad_weight,
             .run = run_conv_grad_weight<T>});
}

}  // namespace

void add_conv(KernelTable& table) {
  add_conv_for<float>(table);
  add_conv_for<BFloat16>(table);
  add_conv_for<Float16>(table);
}

}  // namespace trainscope::cuda
