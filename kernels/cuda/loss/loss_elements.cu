// Losses that are means over elements, MeanSquaredError, MeanAbsoluteError and BceWithLogits, with
// the latter two's gradients (the first one's is written with Sub and Mul).
#include <cmath>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/loss/loss.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

constexpr std::int64_t kMeanBlock = 4096;  // elements added up by one block
constexpr unsigned kFinishMeanThreads = 1024;

std::int64_t mean_blocks(std::int64_t elements) { return (elements + kMeanBlock - 1) / kMeanBlock; }

Prepared prepare_mean(const PrepareArgs& args) {
  const auto blocks = static_cast<std::size_t>(mean_blocks(args.inputs[0].elements()));
  return {.workspace_bytes = blocks * sizeof(double), .state = nullptr};
}

// --- Terms of a mean and their slopes ------------------------------------------------------------

struct SquaredError {
  template <typename T>
  __device__ static double term(T x, T target) {
    const double difference = static_cast<double>(x) - static_cast<double>(target);
    return difference * difference;
  }
};

struct AbsoluteError {
  template <typename T>
  __device__ static double term(T x, T target) {
    return std::fabs(static_cast<double>(x) - static_cast<double>(target));
  }
  template <typename T>
  __device__ static T slope(T x, T target) {
    const T difference = x - target;  // 0 and NaN are their own sign
    return difference > T{0} ? T{1} : difference < T{0} ? T{-1} : difference;
  }
};

// max(x, 0) - x * target + log(1 + exp(-|x|)), which never overflows.
struct BinaryCrossEntropy {
  template <typename T>
  __device__ static double term(T x, T target) {
    const T positive = x < T{0} ? T{0} : x;  // a NaN stays one
    return static_cast<double>(positive - x * target + std::log1p(std::exp(-std::fabs(x))));
  }
  // sigmoid(x) - target
  template <typename T>
  __device__ static T slope(T x, T target) {
    const T decay = std::exp(-std::fabs(x));
    return (x < T{0} ? decay : T{1}) / (T{1} + decay) - target;
  }
};

// --- Kernels -------------------------------------------------------------------------------------

// sums[b] = the sum of block b's terms. Bytes: x and target read once.
template <class Loss, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    sum_terms(const T* x, const T* target, std::int64_t elements, double* sums) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kMeanBlock;
  const std::int64_t end = begin + kMeanBlock < elements ? begin + kMeanBlock : elements;
  double sum = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    sum += Loss::term(x[i], target[i]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// One block. 0/0 of nothing.
template <typename T>
__global__ void __launch_bounds__(kFinishMeanThreads)
    finish_mean(const double* sums, std::int64_t blocks, std::int64_t elements, T* mean) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *mean = static_cast<T>(sum / static_cast<double>(elements));
}

// x, target -> loss [].
template <class Loss, typename T>
void mean_loss(const RunArgs& args) {
  const std::int64_t elements = args.inputs[0].elements();
  auto* sums = static_cast<double*>(args.workspace);
  launch(args.call, {.blocks = team_blocks(elements, kMeanBlock), .threads = dim3(kTeamThreads)},
         sum_terms<Loss, T>, args.inputs[0].as<const T>(), args.inputs[1].as<const T>(), elements,
         sums);
  launch(args.call, {.blocks = dim3(1), .threads = dim3(kFinishMeanThreads)}, finish_mean<T>, sums,
         mean_blocks(elements), elements, args.outputs[0].as<T>());
}

// dx = slope(x, target) * dloss / n; dx may be x or target.
template <class Loss, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    slopes(const T* dloss, const T* x, const T* target, std::int64_t elements, T* dx) {
  const T scale = static_cast<T>(static_cast<double>(*dloss) / static_cast<double>(elements));
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += threads) {
    dx[i] = Loss::slope(x[i], target[i]) * scale;
  }
}

// dloss [], x, target -> dx
template <class Loss, typename T>
void mean_loss_grad(const RunArgs& args) {
  const std::int64_t elements = args.outputs[0].elements();
  launch(args.call, {.blocks = team_blocks(elements, 1024), .threads = dim3(kTeamThreads)},
         slopes<Loss, T>, args.inputs[0].as<const T>(), args.inputs[1].as<const T>(),
         args.inputs[2].as<const T>(), elements, args.outputs[0].as<T>());
}

template <typename T>
void add_means(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("MeanSquaredError", dtype,
            {.name = "mean_squared_error.cuda",
             .prepare = prepare_mean,
             .run = mean_loss<SquaredError, T>});
  table.add("MeanAbsoluteError", dtype,
            {.name = "mean_absolute_error.cuda",
             .prepare = prepare_mean,
             .run = mean_loss<AbsoluteError, T>});
  table.add("MeanAbsoluteErrorGrad", dtype,
            {.name = "mean_absolute_error_grad.cuda", .run = mean_loss_grad<AbsoluteError, T>});
  table.add("BceWithLogits", dtype,
            {.name = "bce_with_logits.cuda",
             .prepare = prepare_mean,
             .run = mean_loss<BinaryCrossEntropy, T>});
  table.add("BceWithLogitsGrad", dtype,
            {.name = "bce_with_logits_grad.cuda", .run = mean_loss_grad<BinaryCrossEntropy, T>});
}

}  // namespace

void add_element_losses(KernelTable& table) { add_means<float>(table); }

}  // namespace trainscope::cuda
