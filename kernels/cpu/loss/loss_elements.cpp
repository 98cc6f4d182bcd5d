// Losses that are means over elements, MeanSquaredError, MeanAbsoluteError and BceWithLogits, with
// the latter two's gradients (the first one's is written with Sub and Mul).
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kBlock = 4096;  // elements added up in one go
constexpr std::int64_t kLanes = 8;     // running sums that one vector loop keeps apart

std::int64_t blocks_of(std::int64_t elements) { return (elements + kBlock - 1) / kBlock; }

Prepared prepare_partials(const PrepareArgs& a) {
  return {.workspace_bytes =
              static_cast<std::size_t>(blocks_of(a.inputs[0].elements())) * sizeof(double),
          .state = nullptr};
}

// The mean of term(x, target) over all elements: per-block sums in double, added in the order of
// the blocks, so that it does not depend on the number of threads. 0/0 of nothing.
template <typename T, typename Term>
void mean_of(const RunArgs& a, Term term) {
  const T* x = a.inputs[0].as<const T>();
  const T* target = a.inputs[1].as<const T>();
  auto* partials = static_cast<double*>(a.workspace);
  const std::int64_t n = a.inputs[0].elements();
  const std::int64_t blocks = blocks_of(n);

  parallel_for(a.threads, blocks, kElementGrain / kBlock,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t b = first; b < last; ++b) {
                   const std::int64_t end = std::min(n, (b + 1) * kBlock);
                   double lane[kLanes] = {};
                   std::int64_t i = b * kBlock;
                   for (; i + kLanes <= end; i += kLanes) {
                     for (std::int64_t l = 0; l < kLanes; ++l)
                       lane[l] += term(x[i + l], target[i + l]);
                   }
                   for (; i < end; ++i) lane[0] += term(x[i], target[i]);
                   double sum = 0.0;
                   for (double value : lane) sum += value;
                   partials[b] = sum;
                 }
               });
  double sum = 0.0;
  for (std::int64_t b = 0; b < blocks; ++b) sum += partials[b];
  *a.outputs[0].as<T>() = static_cast<T>(sum / static_cast<double>(n));
}

// dx = slope(x, target) * dloss / n.
template <typename T, typename Slope>
void gradient_of_mean(const RunArgs& a, std::int64_t grain, Slope slope) {
  const T* x = a.inputs[1].as<const T>();
  const T* target = a.inputs[2].as<const T>();
  T* dx = a.outputs[0].as<T>();
  const std::int64_t n = a.outputs[0].elements();
  const T scale =
      static_cast<T>(static_cast<double>(*a.inputs[0].as<const T>()) / static_cast<double>(n));
  parallel_for(a.threads, n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) dx[i] = slope(x[i], target[i]) * scale;
  });
}

// x, target -> loss [].
template <typename T>
void mean_squared_error(const RunArgs& a) {
  mean_of<T>(a, [](T x, T target) {
    const double difference = static_cast<double>(x) - static_cast<double>(target);
    return difference * difference;
  });
}

// x, target -> loss [].
template <typename T>
void mean_absolute_error(const RunArgs& a) {
  mean_of<T>(a, [](T x, T target) {
    return std::abs(static_cast<double>(x) - static_cast<double>(target));
  });
}

// dloss [], x, target -> dx = sign(x - target) * dloss / n; dx may be x or target.
template <typename T>
void mean_absolute_error_grad(const RunArgs& a) {
  gradient_of_mean<T>(a, kElementGrain, [](T x, T target) {
    const T difference = x - target;  // 0 and NaN are their own sign
    return difference > T{0} ? T{1} : difference < T{0} ? T{-1} : difference;
  });
}

// x, target -> loss []: max(x, 0) - x * target + log(1 + exp(-|x|)), which never overflows.
template <typename T>
void bce_with_logits(const RunArgs& a) {
  mean_of<T>(a, [](T x, T target) {
    const T positive = x < T{0} ? T{0} : x;  // a NaN stays one
    return static_cast<double>(positive - x * target + std::log1p(std::exp(-std::abs(x))));
  });
}

// dloss [], x, target -> dx = (sigmoid(x) - target) * dloss / n; dx may be x or target.
template <typename T>
void bce_with_logits_grad(const RunArgs& a) {
  gradient_of_mean<T>(a, kElementGrain / 4, [](T x, T target) {
    const T decay = std::exp(-std::abs(x));
    return (x < T{0} ? decay : T{1}) / (T{1} + decay) - target;
  });
}

template <typename T>
void add_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("MeanSquaredError", dtype,
            {.name = "mean_squared_error.reference",
             .prepare = prepare_partials,
             .run = mean_squared_error<T>});
  table.add("MeanAbsoluteError", dtype,
            {.name = "mean_absolute_error.reference",
             .prepare = prepare_partials,
             .run = mean_absolute_error<T>});
  table.add("MeanAbsoluteErrorGrad", dtype,
            {.name = "mean_absolute_error_grad.reference", .run = mean_absolute_error_grad<T>});
  table.add("BceWithLogits", dtype,
            {.name = "bce_with_logits.reference",
             .prepare = prepare_partials,
             .run = bce_with_logits<T>});
  table.add("BceWithLogitsGrad", dtype,
            {.name = "bce_with_logits_grad.reference", .run = bce_with_logits_grad<T>});
}

}  // namespace

void add_element_losses(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
