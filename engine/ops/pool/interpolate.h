// Weighted sums of few elements along one axis: what resizing and padding are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/builder.h"

namespace trainscope {

// Output o of an axis is the sum of weight[o, t] * x[index[o, t]] over its taps t, plus offset[o].
struct Taps {
  std::int64_t outputs = 0;
  std::int64_t count = 1;  // of each output
  Ints index = {};         // [outputs, count]
  Floats weight = {};      // [outputs, count]
  Floats offset = {};      // [outputs]; empty: none
};

ValueId interpolate(Builder& b, ValueId x, int axis, const Taps& taps);
// The gradient by x, which has `size` elements along the axis.
ValueId interpolate_gradient(Builder& b, ValueId dy, int axis, const Taps& taps, std::int64_t size);

}  // namespace trainscope
