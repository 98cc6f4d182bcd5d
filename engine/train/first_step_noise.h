// What the noise of a gradient makes of the first step of Adam and its relatives.
#pragma once

#include "engine/core/tensor.h"

namespace trainscope {

// The first step is lr u(g) with u(g) = g / (|g| + epsilon): an element whose gradient is near its
// noise goes whichever way, and few of them make all the difference (docs/adr/0004).
struct FirstStepNoise {
  double move = 0.0;   // the L2 norm of u(g)
  double apart = 0.0;  // of u(g + n) - u(g), n the noise of each element
};

// `gradient`, f64 of any shape, is multiplied by `scale` first; `relative` is the L2 norm of its
// noise over its own. Of a matrix n is in proportion to the norms of an element's row (the first
// axis) and column, of a vector it is the same for all. Exact zeros have no noise.
FirstStepNoise first_step_noise(const Tensor& gradient, double scale, double relative,
                                double epsilon);

}  // namespace trainscope
