// What dynamic loss scaling decides at the end of a step, on the device.
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// norm [], scale [], good [], taken [] -> step [], scale [], good [], taken []; an output may be
// its input, and may be null.
template <typename T>
struct LossScale {
  const T* norm;
  const T* scale;
  const std::int64_t* good;
  const std::int64_t* taken;
  std::int64_t* step;
  T* new_scale;
  std::int64_t* new_good;
  std::int64_t* new_taken;
  std::int64_t interval;
  double least;
  double most;
};

// A count that a checkpoint may hold stays at the largest number.
__device__ std::int64_t one_more(std::int64_t count) {
  return count < INT64_MAX ? count + 1 : count;
}

// One thread.
template <typename T>
__global__ void decide_loss_scale(const LossScale<T> a) {
  const T norm = *a.norm;
  const bool finite = norm - norm == T{0};
  double scale = static_cast<double>(*a.scale);
  std::int64_t good = finite ? one_more(*a.good) : 0;
  const std::int64_t taken_before = *a.taken;
  const std::int64_t taken = finite ? one_more(taken_before) : taken_before;
  if (!finite) scale *= 0.5;
  if (good >= a.interval) {
    scale *= 2.0;
    good = 0;
  }
  const double most = a.most < a.least ? a.least : a.most;
  const double limited = scale < a.least ? a.least : (scale > most ? most : scale);
  if (a.step != nullptr) *a.step = finite ? taken : 0;
  if (a.new_scale != nullptr) *a.new_scale = static_cast<T>(limited);
  if (a.new_good != nullptr) *a.new_good = good;
  if (a.new_taken != nullptr) *a.new_taken = taken;
}

template <typename T>
void loss_scale_step(const RunArgs& args) {
  const auto& params = std::get<LossScaleParams>(args.params);
  launch(args.call, {.blocks = dim3(1), .threads = dim3(1)}, decide_loss_scale<T>,
         LossScale<T>{.norm = args.inputs[0].as<const T>(),
                      .scale = args.inputs[1].as<const T>(),
                      .good = args.inputs[2].as<const std::int64_t>(),
                      .taken = args.inputs[3].as<const std::int64_t>(),
                      .step = data_or_null<std::int64_t>(args.outputs, 0),
                      .new_scale = data_or_null<T>(args.outputs, 1),
                      .new_good = data_or_null<std::int64_t>(args.outputs, 2),
                      .new_taken = data_or_null<std::int64_t>(args.outputs, 3),
                      .interval = params.interval,
                      .least = params.least,
                      .most = params.most});
}

}  // namespace

void add_loss_scale(KernelTable& table) {
  table.add("LossScaleStep", DType::kF32,
            {.name = "loss_scale_step.cuda", .run = loss_scale_step<float>});
}

}  // namespace trainscope::cuda
