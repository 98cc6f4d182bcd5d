// LayerNormalization and RMSNormalization, the same without a mean, over rows [rows, width].
// Statistics are formed in double, as those of the CPU are.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/norm/row_norm.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// --- LayerNormalization(x, scale [, bias]) -> y [, mean, inverse deviation] ----------------------

template <typename T>
struct LayerNorm {
  const T* x;                // [rows, width]
  const Computed<T>* scale;  // [width]
  const Computed<T>* bias;   // [width], or null
  T* y;                      // [rows, width], may be x
  Computed<T>* mean;         // [rows], or null
  Computed<T>* inverse;      // [rows], or null
  std::int64_t rows;
  std::int64_t width;
  double epsilon;
  bool centered;
};

// Bytes: x read and y written once; the second reading of a row comes from L1, as do scale and bias
// for each row. FLOPs: 4 an element in f64 for the statistics, 4 for the result.
template <class Team, int kWidth, typename T>
__global__ void __launch_bounds__(kTeamThreads) layer_norm_rows(const LayerNorm<T> a) {
  using C = Computed<T>;
  for (std::int64_t row = Team::first(); row < a.rows; row += Team::teams()) {
    const T* x = a.x + row * a.width;
    T* y = a.y + row * a.width;
    const RowStatistics statistics =
        row_statistics<Team, kWidth>(x, a.width, a.epsilon, a.centered);
    const C mean = static_cast<C>(statistics.mean);
    const C inverse = static_cast<C>(statistics.inverse);
    if (Team::rank() == 0) {
      if (a.mean != nullptr) a.mean[row] = mean;
      if (a.inverse != nullptr) a.inverse[row] = inverse;
    }
    for (std::int64_t i = Team::rank() * kWidth; i < a.width; i += Team::size() * kWidth) {
      const auto given = row_pack<kWidth>(x, i);
      const auto scale = row_pack<kWidth>(a.scale, i);
      Pack<C, kWidth> bias{};
      if (a.bias != nullptr) bias = row_pack<kWidth>(a.bias, i);
      Pack<T, kWidth> result;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const C scaled = (static_cast<C>(given.values[k]) - mean) * inverse * scale.values[k];
        result.values[k] = static_cast<T>(a.bias == nullptr ? scaled : scaled + bias.values[k]);
      }
      put_row_pack(y, i, result);
    }
  }
}

template <typename T>
void run_layer_norm(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const RowLayout layout = row_layout(args.params, args.inputs[0].shape());
  const LayerNorm<T> norm{.x = args.inputs[0].as<const T>(),
                          .scale = args.inputs[1].as<const C>(),
                          .bias = data_or_null<const C>(args.inputs, 2),
                          .y = args.outputs[0].as<T>(),
                          .mean = data_or_null<C>(args.outputs, 1),
                          .inverse = data_or_null<C>(args.outputs, 2),
                          .rows = layout.rows,
                          .width = layout.width,
                          .epsilon = params.epsilon,
                          .centered = params.centered};
  with_team(layout.rows, layout.width, [&]<class Team>(Team, const Grid& grid) {
    with_row_packs<kPackOf<T>>(layout.width, [&]<int kWidth>(RowPack<kWidth>) {
      launch(args.call, grid, layer_norm_rows<Team, kWidth, T>, norm);
    });
  });
}

template <typename T>
void add_rows_for(KernelTable& table) {
  const Kernel layer_norm{.name = "layer_norm.cuda", .run = run_layer_norm<T>};
  const Kernel rms_norm{.name = "rms_norm.cuda", .run = run_layer_norm<T>};
  table.add("LayerNormalization", kDTypeOf<T>, layer_norm);
  table.add("RMSNormalization", kDTypeOf<T>, rms_norm);
}

}  // namespace

void add_layer_norm(KernelTable& table) {
  add_rows_for<float>(table);
  add_rows_for<BFloat16>(table);
  add_rows_for<Float16>(table);
  add_layer_norm_grad(table);
}

}  // namespace trainscope::cuda
