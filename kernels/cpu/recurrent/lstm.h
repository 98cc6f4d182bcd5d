// What an LSTM keeps of every step for its gradient.
#pragma once

#include <cstdint>

#include "kernels/cpu/recurrent/recurrent.h"

namespace trainscope::cpu {

// The gates i, o, f and g (ONNX's c) of one sequence at one step, then its cell after it, each from
// the same unit on: they lie H apart.
template <typename T>
struct LstmRow {
  T* i;
  T* o;
  T* f;
  T* g;
  T* cell;

  LstmRow(T* first, std::int64_t hidden)
      : i(first),
        o(first + hidden),
        f(first + 2 * hidden),
        g(first + 3 * hidden),
        cell(first + 4 * hidden) {}
};

}  // namespace trainscope::cpu
