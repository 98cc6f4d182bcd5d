// Two tensors beside each other, element by element.
#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace trainscope::profiler {

// Of the elements that are finite in both.
struct ElementErrors {
  double largest = 0.0;  // absolute difference
  double l2 = 0.0;       // of the difference
  double cosine = 1.0;
  // Distances in units of f32's last place: of so many in 100 elements no more.
  double ulp_median = 0.0;
  double ulp_90 = 0.0;
  double ulp_99 = 0.0;
  double ulp_most = 0.0;
  std::int64_t sign_flips = 0;  // one is below 0 and the other above, or one alone is 0
};
ElementErrors element_errors(const Tensor& a, const Tensor& b);

}  // namespace trainscope::profiler
