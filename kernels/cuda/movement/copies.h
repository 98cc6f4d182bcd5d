// Copies and fills of elements by their bits, over strided loops.
#pragma once

#include "kernels/cuda/pointwise/elementwise.h"

namespace trainscope::cuda {

struct CopyFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

struct ZeroFunction {
  __device__ int operator()() const { return 0; }
};

// Operand 0 of the loop is y, operand 1 is x.
template <class T>
void copy_loop(const CallContext& call, const StridedLoop& loop, T* y, const T* x) {
  map_loop(call, loop, CopyFunction{}, y, x);
}

template <class T>
void fill_zeros(const CallContext& call, T* y, std::int64_t elements) {
  map_loop(call, flat_loop(elements, 1), ZeroFunction{}, y);
}

}  // namespace trainscope::cuda
