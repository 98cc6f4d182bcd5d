// What rounding makes of results: the parts of limits that several comparisons have.
#pragma once

#include <string_view>

#include "kernels/api/dtype.h"
#include "profiler/numerics/tensor_limits.h"

namespace trainscope {

// Of a matmul's factors, relative to the norm of its result.
inline constexpr double kTf32Rounding = 0x1p-11;

// Relative, of a result of this type: half a unit in its last place of types of two bytes, a whole
// one of f32, which others count as.
constexpr double rounding_of(DType dtype) {
  if (dtype == DType::kBF16) return 0x1p-8;
  return dtype == DType::kF16 ? 0x1p-11 : 0x1p-23;
}
// By the type's name.
double rounding_of(std::string_view dtype);

// What a gradient may differ by, relative to the norm of all gradients: some vanish in exact
// arithmetic.
inline constexpr double kOfTheGradients = profiler::kNoiseFactor * profiler::kOfAllGradients;

}  // namespace trainscope
