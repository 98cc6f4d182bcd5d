// Weighted sums of a few elements of a plane for each of many points, and the gradients.
#include <algorithm>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// x [batch, channels, plane], index and weight [batch, points, taps], y [batch, channels, points]
struct Sizes {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t plane;
  std::int64_t points;
  std::int64_t taps;

  Sizes(const Shape& x, const Shape& index)
      : batch(x[0]), channels(x[1]), plane(x[2]), points(index[1]), taps(index[2]) {}
  bool holds(std::int64_t place) const { return place >= 0 && place < plane; }
};

template <typename T>
void sample(const RunArgs& run) {
  const Sizes s(run.inputs[0].shape(), run.inputs[1].shape());
  const T* x = run.inputs[0].as<const T>();
  const auto* index = run.inputs[1].as<const std::int64_t>();
  const T* weight = run.inputs[2].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, s.batch * s.channels, row_grain(s.points * s.taps),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const T* from = x + row * s.plane;
                   const std::int64_t first = row / s.channels * s.points * s.taps;
                   const std::int64_t* places = index + first;
                   const T* weights = weight + first;
                   for (std::int64_t p = 0; p < s.points; ++p) {
                     T sum = 0;
                     for (std::int64_t t = p * s.taps; t < (p + 1) * s.taps; ++t) {
                       if (s.holds(places[t])) sum += weights[t] * from[places[t]];
                     }
                     y[row * s.points + p] = sum;
                   }
                 }
               });
}

// dy, index, weight -> dx. Who adds to a channel adds all that belongs there, point by point: the
// division of the work does not matter.
template <typename T>
void sample_grad_input(const RunArgs& run) {
  const Sizes s(run.outputs[0].shape(), run.inputs[1].shape());
  const T* dy = run.inputs[0].as<const T>();
  const auto* index = run.inputs[1].as<const std::int64_t>();
  const T* weight = run.inputs[2].as<const T>();
  T* dx = run.outputs[0].as<T>();
  parallel_for(run.threads, s.batch * s.channels, row_grain(s.plane + s.points * s.taps),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   T* to = dx + row * s.plane;
                   const std::int64_t first = row / s.channels * s.points * s.taps;
                   std::fill_n(to, s.plane, T{0});
                   for (std::int64_t t = 0; t < s.points * s.taps; ++t) {
                     const std::int64_t place = index[first + t];
                     if (!s.holds(place)) continue;
                     to[place] += weight[first + t] * dy[row * s.points + t / s.taps];
                   }
                 }
               });
}

// dy, x, index -> dweight
template <typename T>
void sample_grad_weight(const RunArgs& run) {
  const Sizes s(run.inputs[1].shape(), run.inputs[2].shape());
  const T* dy = run.inputs[0].as<const T>();
  const T* x = run.inputs[1].as<const T>();
  const auto* index = run.inputs[2].as<const std::int64_t>();
  T* dweight = run.outputs[0].as<T>();
  parallel_for(run.threads, s.batch * s.points, row_grain(s.taps * s.channels),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t n = i / s.points;
                   const T* from = x + n * s.channels * s.plane;
                   const T* gradient = dy + n * s.channels * s.points + i % s.points;
                   for (std::int64_t t = i * s.taps; t < (i + 1) * s.taps; ++t) {
                     T sum = 0;
                     const std::int64_t channels = s.holds(index[t]) ? s.channels : 0;
                     for (std::int64_t c = 0; c < channels; ++c) {
                       sum += gradient[c * s.points] * from[c * s.plane + index[t]];
                     }
                     dweight[t] = sum;
                   }
                 }
               });
}

template <typename T>
constexpr Kernel kSample{.name = "sample", .run = sample<T>};
template <typename T>
constexpr Kernel kSampleGradInput{.name = "sample_grad_input", .run = sample_grad_input<T>};
template <typename T>
constexpr Kernel kSampleGradWeight{.name = "sample_grad_weight", .run = sample_grad_weight<T>};

template <typename T>
void add_for(KernelTable& table) {
  table.add("Sample", kDTypeOf<T>, kSample<T>);
  table.add("SampleGradInput", kDTypeOf<T>, kSampleGradInput<T>);
  table.add("SampleGradWeight", kDTypeOf<T>, kSampleGradWeight<T>);
}

}  // namespace

void add_sample(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
  add_upcast<kSample<float>>(table, "Sample", "sample.upcast");
  add_upcast<kSampleGradInput<float>>(table, "SampleGradInput", "sample_grad_input.upcast");
  add_upcast<kSampleGradWeight<float>>(table, "SampleGradWeight", "sample_grad_weight.upcast");
}

}  // namespace trainscope::cpu
