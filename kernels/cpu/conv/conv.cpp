// Conv, ConvGradInput and ConvGradWeight as direct sums over rows; parallel over output planes.
#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// x [N, C, in...], w [M, C / group, kernel...], y [N, M, out...]
struct Geometry {
  Window window;
  std::int64_t batch;
  std::int64_t in_channels;   // C
  std::int64_t out_channels;  // M
  std::int64_t group;

  std::int64_t in_per_group() const { return in_channels / group; }
  std::int64_t out_per_group() const { return out_channels / group; }
  // Offsets of planes.
  std::int64_t x(std::int64_t n, std::int64_t c) const {
    return (n * in_channels + c) * window.in_elements();
  }
  std::int64_t y(std::int64_t n, std::int64_t m) const {
    return (n * out_channels + m) * window.out_elements();
  }
  // Offset of the weights of out channel m and in channel c of its group.
  std::int64_t w(std::int64_t m, std::int64_t c) const {
    return (m * in_per_group() + c) * window.taps();
  }
  std::int64_t multiplications_per_pair() const { return window.out_elements() * window.taps(); }
};

Geometry geometry(const Params& of, const Shape& x, const Shape& y) {
  const auto& params = std::get<ConvParams>(of);
  return {.window = window_of(params.window, x, y),
          .batch = x[0],
          .in_channels = x[1],
          .out_channels = y[1],
          .group = params.group};
}

// to[i * to_step] += factor * from[i * from_step]
template <typename T>
void add_scaled(std::int64_t n, T factor, const T* from, std::int64_t from_step, T* to,
                std::int64_t to_step) {
  if (from_step == 1 && to_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) to[i * to_step] += factor * from[i * from_step];
}

// sum of a[i] * b[i * b_step]
template <typename T>
T dot(std::int64_t n, const T* a, const T* b, std::int64_t b_step) {
  T sum = 0;
  if (b_step == 1) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i * b_step];
  return sum;
}

// Planes that are worth a thread of their own.
std::int64_t plane_grain(std::int64_t multiplications_per_plane) {
  return row_grain(multiplications_per_plane);
}

template <typename T>
void run_conv(const RunArgs& args) {
  const auto* x = args.inputs[0].as<const T>();
  const auto* w = args.inputs[1].as<const T>();
  const bool has_bias = args.inputs.size() > 2 && args.inputs[2].present;
  const auto* bias = has_bias ? args.inputs[2].as<const T>() : nullptr;
  auto* y = args.outputs[0].as<T>();
  const Geometry g = geometry(args.params, args.inputs[0].shape(), args.outputs[0].shape());

  const auto plane = [&](std::int64_t n, std::int64_t m) {
    T* out = y + g.y(n, m);
    std::fill_n(out, g.window.out_elements(), bias != nullptr ? bias[m] : T{0});
    const std::int64_t first = m / g.out_per_group() * g.in_per_group();
    for (std::int64_t c = 0; c < g.in_per_group(); ++c) {
      const T* in = x + g.x(n, first + c);
      const T* weights = w + g.w(m, c);
      for_each_row(g.window, [&](const Row& row) {
        add_scaled(row.length, weights[row.tap], in + row.in, g.window.stride[2], out + row.out, 1);
      });
    }
  };
  const std::int64_t grain = plane_grain(g.multiplications_per_pair() * g.in_per_group());
  parallel_for(args.threads, g.batch * g.out_channels, grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   plane(i / g.out_channels, i % g.out_channels);
                 }
               });
}

template <typename T>
void run_conv_grad_input(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* w = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Geometry g = geometry(args.params, args.outputs[0].shape(), args.inputs[0].shape());

  const auto plane = [&](std::int64_t n, std::int64_t c) {
    T* in = dx + g.x(n, c);
    std::fill_n(in, g.window.in_elements(), T{0});
    const std::int64_t first = c / g.in_per_group() * g.out_per_group();
    for (std::int64_t m = first; m < first + g.out_per_group(); ++m) {
      const T* out = dy + g.y(n, m);
      const T* weights = w + g.w(m, c % g.in_per_group());
      for_each_row(g.window, [&](const Row& row) {
        add_scaled(row.length, weights[row.tap], out + row.out, 1, in + row.in, g.window.stride[2]);
      });
    }
  };
  const std::int64_t grain = plane_grain(g.multiplications_per_pair() * g.out_per_group());
  parallel_for(args.threads, g.batch * g.in_channels, grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   plane(i / g.in_channels, i % g.in_channels);
                 }
               });
}

template <typename T>
void run_conv_grad_weight(const RunArgs& args) {
  const auto* x = args.inputs[0].as<const T>();
  const auto* dy = args.inputs[1].as<const T>();
  auto* dw = args.outputs[0].as<T>();
  const Geometry g = geometry(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const Spatial& kernel = g.window.kernel;

  // One element of dw: rows are summed in T, their sums in double.
  const auto tap = [&](std::int64_t m, std::int64_t c, std::int64_t index) {
    const Spatial at{index / (kernel[1] * kernel[2]), index / kernel[2] % kernel[1],
                     index % kernel[2]};
    double sum = 0.0;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      const T* in = x + g.x(n, m / g.out_per_group() * g.in_per_group() + c);
      const T* out = dy + g.y(n, m);
      for_each_row_of_tap(g.window, at, [&](const Row& row) {
        sum += static_cast<double>(dot(row.length, out + row.out, in + row.in, g.window.stride[2]));
      });
    }
    return static_cast<T>(sum);
  };
  const std::int64_t grain = plane_grain(g.window.out_elements() * g.batch);
  parallel_for(args.threads, g.out_channels * g.in_per_group() * g.window.taps(), grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t pair = i / g.window.taps();
                   dw[i] =
                       tap(pair / g.in_per_group(), pair % g.in_per_group(), i % g.window.taps());
                 }
               });
}

// Of windows that reach beyond the input only the elements inside are multiplied.
Estimate estimate_inside(const PrepareArgs& args, const Geometry& g) {
  const double flops =
      multiplied(2, pairs_inside(g.window), g.batch, g.out_channels, g.in_per_group());
  return once_through(args, flops).estimate();
}
Estimate estimate_conv(const PrepareArgs& args, const Estimate&) {
  const Shape& y = args.outputs[0].shape();
  return estimate_inside(args, geometry(args.params, args.inputs[0].shape(), y));
}
Estimate estimate_grad_input(const PrepareArgs& args, const Estimate&) {
  const Shape& y = args.inputs[0].shape();
  return estimate_inside(args, geometry(args.params, args.outputs[0].shape(), y));
}
Estimate estimate_grad_weight(const PrepareArgs& args, const Estimate&) {
  const Shape& y = args.inputs[1].shape();
  return estimate_inside(args, geometry(args.params, args.inputs[0].shape(), y));
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Conv", dtype, {.name = "conv.own", .run = run_conv<T>, .estimate = estimate_conv});
  table.add("ConvGradInput", dtype,
            {.name = "conv_grad_input.own",
             .run = run_conv_grad_input<T>,
             .estimate = estimate_grad_input});
  table.add("ConvGradWeight", dtype,
            {.name = "conv_grad_weight.own",
             .run = run_conv_grad_weight<T>,
             .estimate = estimate_grad_weight});
}

}  // namespace

void add_conv(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_conv_onednn(table);
  add_conv_narrow(table);
  add_conv_grad_input_batch(table);
  add_conv_grad_weight_narrow(table);
  add_conv_grad_weight_wide(table);
  add_conv_pointwise(table);
  add_conv_winograd(table);
}

}  // namespace trainscope::cpu
