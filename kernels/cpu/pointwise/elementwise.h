// Kernels that apply a function to each element, of tensors of one shape or broadcast ones.
//
// A function is a struct with `kGrain` (elements worth a thread) and a static `apply`, a template
// over the type that elements are computed with (float for the types of two bytes). The loops carry
// `omp simd` because an input may be the output's memory (element for element): without it the
// compiler would check for overlap and not vectorise.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {

// y[i] = F(x[i])
template <class T, class F>
void run_unary(const RunArgs& run) {
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), F::kGrain,
               [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i) store(y[i], F::apply(computed(x[i])));
               });
}

// z[i] = F(x[i], y[i]) of equal shapes
template <class T, class F>
void run_pairwise(const RunArgs& run) {
  const T* x = run.inputs[0].as<const T>();
  const T* y = run.inputs[1].as<const T>();
  T* z = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), F::kGrain,
               [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i) {
                   store(z[i], F::apply(computed(x[i]), computed(y[i])));
                 }
               });
}

// y[i] = f(x[i]) for a function that holds parameters; x is the first input
template <class T, class F>
void map_elements(const RunArgs& run, std::int64_t grain, F f) {
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), grain,
               [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i) store(y[i], f(computed(x[i])));
               });
}

// z[i] = f(x[i], y[i]) of equal shapes, for a function that holds parameters; x and y are the
// first two inputs
template <class T, class F>
void map_pairs(const RunArgs& run, std::int64_t grain, F f) {
  const T* x = run.inputs[0].as<const T>();
  const T* y = run.inputs[1].as<const T>();
  T* z = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), grain,
               [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i) {
                   store(z[i], f(computed(x[i]), computed(y[i])));
                 }
               });
}

inline Prepared prepare_broadcast(const PrepareArgs& args) {
  return {.workspace_bytes = 0,
          .state = std::make_shared<const StridedLoop>(
              broadcast_loop(args.outputs[0].shape(), args.inputs))};
}

// One row, in which each of x and y is an array (stride 1) or one number (stride 0).
template <class T, class U, class F>
void binary_row(const T* x, std::int64_t stride_x, const T* y, std::int64_t stride_y, U* z,
                std::int64_t count) {
  if (stride_x != 0 && stride_y != 0) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      store(z[i], F::apply(computed(x[i]), computed(y[i])));
    }
  } else if (stride_x != 0) {
    const Computed<T> b = *y;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) store(z[i], F::apply(computed(x[i]), b));
  } else {
    const Computed<T> a = *x;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) store(z[i], F::apply(a, computed(y[i])));
  }
}

// z = F(x, y) with broadcasting; U is the output's element type.
template <class T, class U, class F>
void run_binary(const RunArgs& run) {
  const auto& loop = *static_cast<const StridedLoop*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  const T* y = run.inputs[1].as<const T>();
  U* z = run.outputs[0].as<U>();
  const std::int64_t stride_x = loop.row_stride(1);
  const std::int64_t stride_y = loop.row_stride(2);
  parallel_for(run.threads, loop.elements, F::kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
      binary_row<T, U, F>(x + at[1], stride_x, y + at[2], stride_y, z + at[0], count);
    });
  });
}

// z = f(a, b, c) with broadcasting, of the first two inputs and a third, which may be of another
// type.
template <class T, class C, class F>
void map_triples(const RunArgs& run, const C* c, std::int64_t grain, F f) {
  const auto& loop = *static_cast<const StridedLoop*>(run.state);
  const T* a = run.inputs[0].as<const T>();
  const T* b = run.inputs[1].as<const T>();
  T* z = run.outputs[0].as<T>();
  const std::int64_t step_a = loop.row_stride(1);
  const std::int64_t step_b = loop.row_stride(2);
  const std::int64_t step_c = loop.row_stride(3);
  parallel_for(run.threads, loop.elements, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        z[at[0] + i] = f(a[at[1] + i * step_a], b[at[2] + i * step_b], c[at[3] + i * step_c]);
      }
    });
  });
}

}  // namespace trainscope::cpu
