// Geometries of convolutions, and what their kernels and gradients are run with.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

#include "kernels/cpu/conv/conv.h"
#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {

inline KernelTable conv_table() {
  KernelTable table;
  add_conv(table);
  return table;
}

struct Sweep {
  const char* name;
  Shape x, w, y;
  ConvParams params;
};

inline WindowParams window_2d(std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                              std::int64_t dilation = 1) {
  return {.rank = 2,
          .kernel = {kernel, kernel, 1},
          .stride = {stride, stride, 1},
          .dilation = {dilation, dilation, 1},
          .pad_begin = {pad, pad, 0},
          .pad_end = {pad, pad, 0}};
}

template <typename T>
KernelCase<T> forward_case(const Sweep& sweep, int threads) {
  return {.params = sweep.params,
          .inputs = {Host<T>::random(sweep.x, 1), Host<T>::random(sweep.w, 2),
                     Host<T>::random({sweep.w[0]}, 3)},
          .outputs = {sweep.y},
          .threads = threads};
}
template <typename T>
KernelCase<T> grad_input_case(const Sweep& sweep, int threads) {
  return {.params = sweep.params,
          .inputs = {Host<T>::random(sweep.y, 4), Host<T>::random(sweep.w, 2)},
          .outputs = {sweep.x},
          .threads = threads};
}
template <typename T>
KernelCase<T> grad_weight_case(const Sweep& sweep, int threads) {
  return {.params = sweep.params,
          .inputs = {Host<T>::random(sweep.x, 1), Host<T>::random(sweep.y, 4)},
          .outputs = {sweep.w},
          .threads = threads};
}

// Against the plain kernel in double, and the same bits for any threads. `make_case(T{}, threads)`.
template <class MakeCase>
void check_gradient(const KernelTable& table, std::string_view op, std::string_view kernel,
                    MakeCase make_case) {
  KernelRun<float> one(table, op, kernel, make_case(float{}, 1));
  REQUIRE(one.supported());
  KernelRun<double> exact(table, op, "own", make_case(double{}, 1));
  CHECK(relative_error(one.run()[0], exact.run()[0]) < 2e-6);
  for (int threads : {2, 5}) {
    KernelRun<float> more(table, op, kernel, make_case(float{}, threads));
    CHECK(same_bits(one.run(), more.run()));
  }
}

}  // namespace trainscope::cpu
