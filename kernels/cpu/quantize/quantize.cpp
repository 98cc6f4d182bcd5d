// What quantizing and back makes of a float, and which of its gradients pass.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;  // a division and a rounding for each element

// x as [rows, inner]: a row lies in one block of the axis.
struct ScaleLayout {
  std::int64_t size = 1;  // of the axis
  std::int64_t inner = 1;
  std::int64_t block = 1;
  std::int64_t blocks = 1;
  std::int64_t step =
      0;  // from element to element of a row: 1 where blocks have scales of their own
};

ScaleLayout scale_layout(const Shape& x, const QuantizeParams& params) {
  ScaleLayout layout{.size = x[params.axis]};
  for (int a = params.axis + 1; a < x.rank; ++a) layout.inner *= x[a];
  layout.block = params.block_size > 0 ? params.block_size : 1;
  layout.blocks = (layout.size + layout.block - 1) / layout.block;
  layout.step = params.block_size > 0 ? 1 : 0;
  return layout;
}

// Where the scales of a row begin.
std::int64_t scale_of(const ScaleLayout& layout, std::int64_t row) {
  const std::int64_t index = row % layout.size / layout.block;
  if (layout.step == 0) return index;
  return (row / layout.size * layout.blocks + index) * layout.inner;
}

// Calls f(begin, count, scale, step) for pieces of x whose elements have the scales
// scale[0], scale[step], ...
template <class F>
void for_each_piece(const RunArgs& run, F&& f) {
  const auto& params = std::get<QuantizeParams>(run.params);
  const std::int64_t elements = run.inputs[0].elements();
  if (elements == 0) return;
  if (run.inputs[1].elements() == 1) {
    parallel_for(run.threads, elements, kGrain, [&](std::int64_t begin, std::int64_t end) {
      f(begin, end - begin, std::int64_t{0}, std::int64_t{0});
    });
    return;
  }
  const ScaleLayout layout = scale_layout(run.inputs[0].shape(), params);
  parallel_for(run.threads, elements / layout.inner, row_grain(layout.inner),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   f(row * layout.inner, layout.inner, scale_of(layout, row), layout.step);
                 }
               });
}

// Inputs x, scale, zero point; y may be x.
template <class T>
void fake_quantize(const RunArgs& run) {
  const auto& params = std::get<QuantizeParams>(run.params);
  const T least = static_cast<T>(params.least);
  const T greatest = static_cast<T>(params.greatest);
  const T* x = run.inputs[0].as<const T>();
  const T* scales = run.inputs[1].as<const T>();
  const T* zeros = run.inputs[2].as<const T>();
  T* y = run.outputs[0].as<T>();
  for_each_piece(run,
                 [=](std::int64_t begin, std::int64_t count, std::int64_t at, std::int64_t step) {
#pragma omp simd
                   for (std::int64_t i = 0; i < count; ++i) {
                     const T scale = scales[at + i * step];
                     const T zero = zeros[at + i * step];
                     const T q = std::nearbyint(x[begin + i] / scale) + zero;
                     const T raised = q < least ? least : q;
                     y[begin + i] = ((raised > greatest ? greatest : raised) - zero) * scale;
                   }
                 });
}

// Inputs x, scale, zero point, dy.
template <class T>
void fake_quantize_grad(const RunArgs& run) {
  const auto& params = std::get<QuantizeParams>(run.params);
  const T least = static_cast<T>(params.least);
  const T greatest = static_cast<T>(params.greatest);
  const T* x = run.inputs[0].as<const T>();
  const T* scales = run.inputs[1].as<const T>();
  const T* zeros = run.inputs[2].as<const T>();
  const T* dy = run.inputs[3].as<const T>();
  T* dx = run.outputs[0].as<T>();
  for_each_piece(
      run, [=](std::int64_t begin, std::int64_t count, std::int64_t at, std::int64_t step) {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) {
          const T q = std::nearbyint(x[begin + i] / scales[at + i * step]) + zeros[at + i * step];
          dx[begin + i] = q >= least && q <= greatest ? dy[begin + i] : T(0);
        }
      });
}

template <class T>
constexpr Kernel kFakeQuantize{.name = "fake_quantize", .run = fake_quantize<T>};
template <class T>
constexpr Kernel kFakeQuantizeGrad{.name = "fake_quantize_grad", .run = fake_quantize_grad<T>};

}  // namespace

void add_quantize(KernelTable& table) {
  table.add("FakeQuantize", DType::kF32, kFakeQuantize<float>);
  table.add("FakeQuantize", DType::kF64, kFakeQuantize<double>);
  table.add("FakeQuantizeGrad", DType::kF32, kFakeQuantizeGrad<float>);
  table.add("FakeQuantizeGrad", DType::kF64, kFakeQuantizeGrad<double>);
  add_upcast<kFakeQuantize<float>>(table, "FakeQuantize", "fake_quantize.upcast");
  add_upcast<kFakeQuantizeGrad<float>>(table, "FakeQuantizeGrad", "fake_quantize_grad.upcast");
}

}  // namespace trainscope::cpu
