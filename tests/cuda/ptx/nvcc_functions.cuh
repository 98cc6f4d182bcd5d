// Functions for which kernels of the emulator and of the interpreter have one definition, the
// host's: CUDA's give other last bits. nvcc includes this file before each source; the PTX then
// calls what shared_functions.cpp answers.
//
// Roots, fused multiplications and roundings are not here: their bits are the same everywhere.
#pragma once

#include <cmath>
#include <complex>
#include <random>

#define TRAINSCOPE_SHARED_FUNCTIONS(F, G) \
  F(exp)                                  \
  F(log)                                  \
  F(log1p)                                \
  F(expm1)                                \
  F(sin)                                  \
  F(cos)                                  \
  F(tan)                                  \
  F(asin)                                 \
  F(acos)                                 \
  F(atan)                                 \
  F(sinh)                                 \
  F(cosh)                                 \
  F(asinh)                                \
  F(acosh)                                \
  F(atanh)                                \
  F(tanh)                                 \
  F(erf)                                  \
  F(erfc)                                 \
  F(rsqrt)                                \
  G(pow)

#define TRAINSCOPE_OF_ONE(name)                                   \
  extern "C" __device__ float trainscope_##name##_f32(float x);   \
  extern "C" __device__ double trainscope_##name##_f64(double x); \
  __host__ __device__ inline float trainscope_##name(float x) {   \
    return trainscope_##name##_f32(x);                            \
  }                                                               \
  __host__ __device__ inline double trainscope_##name(double x) { \
    return trainscope_##name##_f64(x);                            \
  }                                                               \
  namespace std {                                                 \
  using ::trainscope_##name;                                      \
  }
#define TRAINSCOPE_OF_TWO(name)                                             \
  extern "C" __device__ float trainscope_##name##_f32(float x, float y);    \
  extern "C" __device__ double trainscope_##name##_f64(double x, double y); \
  __host__ __device__ inline float trainscope_##name(float x, float y) {    \
    return trainscope_##name##_f32(x, y);                                   \
  }                                                                         \
  __host__ __device__ inline double trainscope_##name(double x, double y) { \
    return trainscope_##name##_f64(x, y);                                   \
  }                                                                         \
  namespace std {                                                           \
  using ::trainscope_##name;                                                \
  }

TRAINSCOPE_SHARED_FUNCTIONS(TRAINSCOPE_OF_ONE, TRAINSCOPE_OF_TWO)

// NOLINTBEGIN: CUDA's names
#define exp trainscope_exp
#define log trainscope_log
#define log1p trainscope_log1p
#define expm1 trainscope_expm1
#define sin trainscope_sin
#define cos trainscope_cos
#define tan trainscope_tan
#define asin trainscope_asin
#define acos trainscope_acos
#define atan trainscope_atan
#define sinh trainscope_sinh
#define cosh trainscope_cosh
#define asinh trainscope_asinh
#define acosh trainscope_acosh
#define atanh trainscope_atanh
#define tanh trainscope_tanh
#define erf trainscope_erf
#define erfc trainscope_erfc
#define pow trainscope_pow
#define rsqrt trainscope_rsqrt
#define rsqrtf trainscope_rsqrt
#define __expf trainscope_exp
#define __logf trainscope_log
// NOLINTEND
