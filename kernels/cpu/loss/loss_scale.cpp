// What dynamic loss scaling decides at the end of a step.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {
namespace {

// A count that a checkpoint may hold stays at the largest number.
std::int64_t one_more(std::int64_t count) {
  return count < std::numeric_limits<std::int64_t>::max() ? count + 1 : count;
}

// norm [], scale [], good [], taken [] -> step [], scale [], good [], taken []; an output may be
// its input.
template <typename T>
void loss_scale_step(const RunArgs& a) {
  const auto& params = std::get<LossScaleParams>(a.params);
  const bool finite = std::isfinite(*a.inputs[0].as<const T>());
  double scale = static_cast<double>(*a.inputs[1].as<const T>());
  std::int64_t good = finite ? one_more(*a.inputs[2].as<const std::int64_t>()) : 0;
  const std::int64_t taken_before = *a.inputs[3].as<const std::int64_t>();
  const std::int64_t taken = finite ? one_more(taken_before) : taken_before;
  if (!finite) scale *= 0.5;
  if (good >= params.interval) {
    scale *= 2.0;
    good = 0;
  }
  const auto write = [&a](std::size_t output, auto value) {
    if (output >= a.outputs.size() || !a.outputs[output].present) return;
    *a.outputs[output].as<decltype(value)>() = value;
  };
  write(0, finite ? taken : std::int64_t{0});
  write(1, static_cast<T>(std::clamp(scale, params.least, std::max(params.least, params.most))));
  write(2, good);
  write(3, taken);
}

}  // namespace

void add_loss_scale(KernelTable& table) {
  table.add("LossScaleStep", DType::kF32,
            {.name = "loss_scale_step", .run = loss_scale_step<float>});
  table.add("LossScaleStep", DType::kF64,
            {.name = "loss_scale_step", .run = loss_scale_step<double>});
}

}  // namespace trainscope::cpu
