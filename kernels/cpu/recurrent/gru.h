// What a GRU keeps of every step for its gradient.
#pragma once

#include <cstdint>

#include "kernels/cpu/recurrent/recurrent.h"

namespace trainscope::cpu {

// The gates z, r and g (ONNX's h) of one sequence at one step, each from the same unit on: they lie
// H apart. Behind them, where the reset gate scales it, the product h R' (and R's bias) of g; in
// the gradient the gradient of that product.
template <typename T>
struct GruRow {
  T* z;
  T* r;
  T* g;
  T* product;

  GruRow(T* first, std::int64_t hidden)
      : z(first), r(first + hidden), g(first + 2 * hidden), product(first + 3 * hidden) {}
};

}  // namespace trainscope::cpu
