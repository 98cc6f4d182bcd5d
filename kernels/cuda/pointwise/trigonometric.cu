// Trigonometric and hyperbolic functions and their inverses.
#include <cmath>
#include <string_view>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// FUNCTION(op, name of the kernel, function of <cmath>)
#define TRAINSCOPE_FUNCTIONS                \
  FUNCTION(Sin, "sin.cuda", std::sin)       \
  FUNCTION(Cos, "cos.cuda", std::cos)       \
  FUNCTION(Tan, "tan.cuda", std::tan)       \
  FUNCTION(Asin, "asin.cuda", std::asin)    \
  FUNCTION(Acos, "acos.cuda", std::acos)    \
  FUNCTION(Atan, "atan.cuda", std::atan)    \
  FUNCTION(Sinh, "sinh.cuda", std::sinh)    \
  FUNCTION(Cosh, "cosh.cuda", std::cosh)    \
  FUNCTION(Asinh, "asinh.cuda", std::asinh) \
  FUNCTION(Acosh, "acosh.cuda", std::acosh) \
  FUNCTION(Atanh, "atanh.cuda", std::atanh)

#define FUNCTION(op, name, function)     \
  struct op##Function {                  \
    template <class T>                   \
    __device__ T operator()(T x) const { \
      return function(x);                \
    }                                    \
  };
TRAINSCOPE_FUNCTIONS
#undef FUNCTION

}  // namespace

void add_trigonometric(KernelTable& table) {
#define FUNCTION(op, kernel, function)                                                  \
  table.add(#op, DType::kF32, {.name = kernel, .run = run_unary<float, op##Function>}); \
  table.add(#op, DType::kF64, {.name = kernel, .run = run_unary<double, op##Function>});
  TRAINSCOPE_FUNCTIONS
#undef FUNCTION
}

}  // namespace trainscope::cuda
